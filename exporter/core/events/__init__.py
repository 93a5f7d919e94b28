"""One event: its line, envelope, data, and what it is.

lines, envelope, json_scanner   bytes to an event, leniently
tool_calls   which command a tool's answer is of
redaction, exempt_files, projection, live_text   what redactors and readers are asked; live text that comes in pieces
summary, digest   the summary of a session, computed from its events; the digest that compares two sides
"""
