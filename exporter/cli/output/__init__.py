"""How the command line writes: `output` knows the two streams and what the global flags ask of them.

`table` aligns what fits a terminal, `text` words numbers and times, `events` shows an event as a line, `notices` and
`progress` show what a command reports while it works.
"""
