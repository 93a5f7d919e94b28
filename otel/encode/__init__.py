"""OTLP bytes and OTLP JSON.

records                 spans, log records and metrics; keyvalues and varint are the pieces
trace_json, host_logs   a session's spans as JSON; an agent host's log records as protobuf
"""
