"""Measurements of a session, and their sums in the order of event time.

machine         events and finished spans to measurements; usage, from_spans and live make them
aggregate       the sums of one stream and their stored state; accumulator adds up, measurements are kept as bytes
"""
