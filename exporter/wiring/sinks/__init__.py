"""Every kind of sink: one module here and one line in `registry` make a sink.

Read `kind` (the description of a kind), `registry` (all kinds, and what the program asks of all), then any of
`mission_control`, `embedded`, `otlp`, `archive`. A module here is fast to import, because `status` needs the names of
all sinks; the parts of a sink are imported when it is built.
"""
