"""The composition root: makes concrete parts from the settings. Only `app.py` calls it.

assembly        a daemon and its parts
sinks, sources  every kind of sink and source, one registration each
otlp_endpoint, telemetry, event_views   the package `otel`: sinks of an endpoint, what else it is sent, views of pages
redactor, redact_commands               the package `redaction`: the redactor of the settings, `exporter redact`
index_worker    an index worker behind its port
service, upgrade   the program as a service of this machine, and whether there is a newer one
doctor_facts    the input of the doctor
"""
