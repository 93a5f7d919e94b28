"""The spans of a session: one trace per interaction.

machine         takes events in order, with a handler per type of event
interactions, agents, chats, tools   the spans, by kind; tools has permissions and hooks too
spans, span_events, messages         what all spans share, and what is said in them
"""
