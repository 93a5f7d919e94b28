"""Decisions without input or output: values and `now` in, values out."""
