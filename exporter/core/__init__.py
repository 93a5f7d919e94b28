"""Decisions without input or output: values and `now` in, values out.

events          one event: its line, its envelope, what it is
delivery        the events of one session on their way to one sink
agents          which sub-agent an event belongs to
ahp             the Agent Host Protocol for an observer
names, notice   names that several parts agree on; messages of the exporter about itself
"""
