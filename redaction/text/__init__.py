"""Reading raw bytes as text, without decoding a line. Nothing here knows rules.

escapes         quotes, newlines and words at any depth of escapes
extent          where a value ends
views           the same bytes without escapes, colours or percent-encoding, with the way back to the original
json_strings    the strings of a JSON line by their places, and the paths to them
"""
