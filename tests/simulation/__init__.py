"""A simulation."""
