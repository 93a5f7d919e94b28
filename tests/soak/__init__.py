"""Long runs, by name: `make soak` runs them all, `make soak PART=NAME` one, `python -m tests.soak --list` lists them.

parts      the registry: what each part is, and the command that runs it
flow       a daemon and receivers that fail, restart and lose, while people write: does anything grow?
flapping   a proxy that passes on, refuses, resets, or is down
figures    what processes and directories take, and whether that stays flat; the plot
leaking    the program with a leak planted: the control

A part takes at most half an hour on two cores. `flow` runs in a short form in `make test`.
"""
