"""Tests of `exporter.state`."""
