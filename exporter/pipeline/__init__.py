"""The road of one event, in reading order.

segment_reader  reads a session file from a position and makes redacted segments, once for all sinks at that position
event_feed      gives a lane its next segment; record_feed and record_cache turn it into the records of an OTLP signal
lane            moves one session to one sink: the next segment, its answer, its mark
sink_session    registers the session, sends a segment, follows the answers; outcome names what that can come to
sink_state      what all lanes of one sink share; sink_workers gives the lanes their turns behind one retry gate
metric_sender   sends the sums that lanes have counted; pace and progress belong to one lane; single_event sends one
"""
