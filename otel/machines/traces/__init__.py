"""The spans of a session: one trace per interaction.

machine         takes events in order; handlers says what each type does, trace_state who is at work
interactions, agents, invocation, chats, tools, waits   the spans, by kind
spans, span_events, messages, rows                      what all spans share, and what is said in them
"""
