"""The way of one event from a session file to a sink, in reading order.

segment_reader  reads a session file from a position and makes redacted segments, once for all sinks at that position
redactors       the functions of a redactor, and redaction_helper a process that redacts ahead in a long backlog
feed            what a lane asks of its feed, the next segment and what it means to the sink; and the feed of a sink
                that takes the events themselves, which are the segments as they are read
record_feed     makes segments into the records of an OTLP signal, and keeps those for the other signals
lane            one session on its way to one sink: a turn reads the next segment, has it sent and moves the mark
sink_session    registers the session, sends, asks what the sink has, and does what the state of the session demands
sink_state      what all lanes of one sink share, and what each lane has done and what troubles it
sink_workers    gives the lanes of a sink their turns behind its retry gate; metric_sender sends what lanes have counted

Decisions are made in `core/delivery`: the state of a session at a sink in `session_state`, halving in `batches`.
"""
