"""Secrets out of bytes, JSON events and text; usable alone."""
