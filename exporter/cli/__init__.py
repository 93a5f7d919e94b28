"""The command line: arguments come in, text or JSON and an exit code go out; `exporter.app` does the work.

Read `main` (one command line and its ending), `registry` (the list of commands), `groups` (overview and groups),
`command` (what every command has), then a file of `commands` or `redact`. `values` reads arguments, `session_ids` finds
sessions by a prefix, `context` is what a command gets, `output` is how it writes.

To add a command: one file in `commands` with a function under `@command`, one line in `registry.COMMANDS`. Help,
completion and the tests of both find it there. A new group also needs its summary in `registry.GROUPS`.
"""
