"""The way of one event from a session file to a sink, in reading order.

segment_reader  reads a session file from a position and makes redacted segments, once for all sinks at that position
feed            what a lane asks of its feed: the next segment, and what it means to the sink
event_feed      gives the segments as they are read, to a sink that takes the events themselves
record_feed     makes them into the records of an OTLP signal; record_cache keeps those for the other signals
lane            one session on its way to one sink: a turn reads the next segment, has it sent and moves the mark
sink_session    registers the session, sends, asks what the sink has, and does what the state of the session demands
sink_state      what all lanes of one sink share; progress is what one lane has done and what troubles it
sink_workers    gives the lanes of a sink their turns behind its retry gate; metric_sender sends what lanes have counted

Decisions are made in `core/delivery`: the state of a session at a sink in `session_state`, halving in `batches`.
"""
