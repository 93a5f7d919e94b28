"""The composition root: makes concrete parts from the settings. Only `app.py` calls it.

assembly        a daemon and its parts
sinks, sources  every kind of sink and source, one registration each
otlp_endpoint, telemetry, event_views   the package `otel`: sinks of an endpoint, what else it is sent, views of pages
redactor, rule_list                     the package `redaction`: the redactor of the settings, its rules
redact_input, redact_preview            the commands below `exporter redact`
doctor_facts    the input of the doctor
"""
