"""One event: its line, envelope, data, and what it is.

lines, envelope, types, json_scanner   bytes to an event, leniently
redaction, exempt_files, projection, live_text   what redactors and readers are asked; live text that comes in pieces
summary, digest   what a session is, told from its events; the sum that compares two places
"""
