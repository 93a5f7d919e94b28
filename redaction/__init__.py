"""Secrets out of bytes, JSON events and text; usable alone. Start with `engine`, the interface for callers.

engine          the interface for callers: `Engine`, its results, findings
search          finds the spans of secrets: the prefilter's hits, extraction by the rules, known values, the allowlist
prefilter       where may a secret be? one pass over the raw bytes for all rules
rules           what is a secret: formats, families of rules, detectors of detect-secrets, rules of users
commands        does this command print a secret? then its whole answer is masked
heuristics      is this value a secret? decisions about one value and its name
text            reading raw bytes as text: escapes, views, JSON strings
spans           spans of secrets, and the strings of a line that they lie in
protected       strings that are never changed; `linkage.txt` lists the ids that link events
known           known values; `allowlist` holds what is not masked
stream          text that arrives in pieces
given           reads the files that users name
errors          everything that the package raises

`tests/redaction` mirrors these packages. Its suites of behaviour: `contract.py` (what every redactor promises), run by
`test_engine`; `test_positions`, `test_false_alarms` and `test_heldout` (what is found and what is left); `test_hostile`
and `test_fuzz` (no line is slow or breaks anything); `test_fallback` (without Hyperscan); `test_with_known_values`.
"""
