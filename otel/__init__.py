"""Session events as OpenTelemetry traces, metrics and logs."""
