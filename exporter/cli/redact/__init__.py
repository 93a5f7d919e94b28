"""The commands of `exporter redact`; none of them ever shows a secret.

`test` masks what it is given, `preview` shows what would be masked in a session, `rules` lists what is searched for,
`report` counts what was masked.
"""
