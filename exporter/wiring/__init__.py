"""The composition root: concrete parts made from settings. Only `app.py` calls it, no event passes it.

assembly        a daemon and its parts
sinks, sources  every kind of sink and source, one registration each
redactor, known_values, rule_list   the package `redaction` as the core asks for it; values that must never leave
redact_input, redact_preview        what the commands below `exporter redact` do
event_views, health_metrics, live_metrics, host_logs   the package `otel` for pages, own metrics, live events, host logs
doctor_facts    what the doctor is told
"""
