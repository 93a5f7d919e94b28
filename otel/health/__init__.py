"""The exporter's own figures, through OpenTelemetry's SDK.

metrics         the figures as metrics; exporter sends them with the settings of an endpoint
"""
