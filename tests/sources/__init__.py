"""Tests of `exporter.sources`."""
