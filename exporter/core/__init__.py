"""Decisions without input or output: values and `now` in, values out.

events          one event: its line, its envelope, what it is
delivery        the events of one session on their way to one sink
agents          which sub-agent an event belongs to
ahp             the Agent Host Protocol for somebody who only watches
names, notice   names that several parts agree on; what the exporter says about itself
"""
