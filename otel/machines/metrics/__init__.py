"""Measurements of a session, and their sums in the order of event time.

machine         events and finished spans to measurements; meter, usage, totals, from_spans, live make them
aggregate       sums of one stream; accumulator adds up, sums is the state that is kept, measurements the bytes
"""
