"""Session events as OpenTelemetry traces, metrics and logs.

names, instruments   every name and every metric, once
event, payloads      reading events leniently; projection says what an event is to model, screen and store
machines             events to spans, measurements and records, without input or output
bridge               one session's records of all signals; model is what they are made of
encode, send         OTLP bytes; one request at a time
health               the exporter's own figures, through OpenTelemetry's SDK
"""
