"""The running exporter: one event loop that joins sources, redactor, sinks and store."""
