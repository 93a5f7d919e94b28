"""Tests of `exporter.store`."""
