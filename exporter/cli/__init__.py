"""The command line: arguments come in, an exit code and text or JSON go out; the work is done by `exporter.app`.

Read `main` (one command line and its ending), `registry` (the list of commands), `groups` (the overview and groups),
`command` (what every command gets and has), then a file of `commands` or `redact`. `values` reads arguments,
`session_ids` finds sessions by a prefix, `output` is how a command writes.

To add a command: one file in `commands` with a function under `@command`, one line in `registry.COMMANDS`. Help,
completion and the tests of both find it there. A new group also needs its summary in `registry.GROUPS`.
"""
