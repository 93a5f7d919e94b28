"""The fields of event data that the machines look at; all are optional.

events          notifications, messages, usage, sub-agents, sessions
tools           tool calls, permissions, hooks
"""
