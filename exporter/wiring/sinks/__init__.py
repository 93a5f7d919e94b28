"""Every kind of sink, joined with the settings: one module here and one line in `registry` make a sink.

Read `kind` (what a kind has to say of itself), `registry` (all of them, and what the program asks of all), then any of
`mission_control`, `embedded`, `otlp`, `archive`. A module here is light to import, because `status` asks all of them
for their names; what it builds is imported when it is built.
"""
