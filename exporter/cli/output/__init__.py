"""How the command line writes: `output` knows the two streams and what the global flags ask of them.

`table` aligns what fits a terminal, `text` words numbers and times, `events` shows an event as a line, `notices` and
`progress` tell what a command has to say while it works.
"""
