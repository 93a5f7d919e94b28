"""Texts inside raw bytes: escapes, JSON strings, other spellings, spans.

json_strings    the strings of a JSON line by their places; string_parts which of them a span touches
escapes, extent quotes and newlines at any depth of escapes; where a value begins and ends
views, percent  the same bytes without escapes, colours or percent-encoding; spans merges and replaces
"""
