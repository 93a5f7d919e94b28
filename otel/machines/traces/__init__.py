"""The spans of a session: one trace per interaction.

machine         takes events in order, with a handler per type of event
interactions, agents   the main agent's invocations, and those of sub-agents
chats           `Invocation` (how one starts and ends), and the model calls in it
tools           tool calls, permissions and hooks
workflows       what is above several agents (GenAI conventions only)
spans, span_events, messages         what all spans share, and what is said in them
"""
