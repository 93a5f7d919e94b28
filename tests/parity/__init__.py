"""Our spans against the CLI's own telemetry of the same session."""
