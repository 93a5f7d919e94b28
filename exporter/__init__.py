"""The exporter program: follow sessions, redact, deliver, remember.

cli             the command line; app has one function per command
wiring          concrete parts made from settings: the composition root
pipeline        the road of one event: session file, redacted segment, lane, sink
daemon          the running exporter: which sessions, when it is done, and what it answers
core            decisions without input or output
sources, sinks, state   the edges: where events come from, where they go, what is remembered
missioncontrol  the embedded receiver: store, search, APIs, pages
doctor, demo, grafana, stack   checks of an installation; a made-up session; dashboards; backends for them
"""
