"""Measurements of a session, and their sums in the order of event time.

machine         events and finished spans to measurements; usage and live make them too
aggregate       the sums of one stream and their stored state; measurements are kept as bytes
"""
