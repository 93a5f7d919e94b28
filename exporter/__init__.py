"""The exporter program: follow sessions, redact, deliver, remember."""
