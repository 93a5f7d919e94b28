"""Tests of `exporter.core`."""
