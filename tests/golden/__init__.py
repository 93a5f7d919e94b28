"""Golden outputs: proof that a restructuring changes no behaviour, by comparing what two commits of the program give.

    python -m tests.golden write BEFORE --checkout CHECKOUT_BEFORE
    python -m tests.golden write AFTER --checkout CHECKOUT_AFTER --saved BEFORE
    python -m tests.golden compare BEFORE AFTER

Both sides are written by the same tree of this package, with the same captures, on one machine, and with the same
`--work` on one file system, for paths and the order of directories are in what commands say. Only the groups of what
was written can be compared: `compare --group` names some. The steps of `write` and their groups: `otlp` (otlp-encoded,
otlp-sent, otlp-followed), `deliveries` (deliveries, marks), `pages` (pages, api, assets, uploads), `state` (state,
state-pages, state-api, state-assets), `cli` (cli). What is left out: help and usage texts, reports' lag and order,
processes' ids, rates, progress, and checks of the doctor that are about the machine.

Read in this order: `__main__` (the commands), `captures` (the input), `machine` (a private home, and the program's
processes on it, with the clock and the chance of `pinned`), `recorders` (the receivers), then the groups: `otlp`,
`deliveries`, `pages` (with `facts`), `state` and `command_line`; `store` keeps cases, `comparing` compares them.

Nothing here imports the program. It is driven from outside, but for `product`, which runs in a process of its own and
finds the OTLP encoder in whatever module it is.
"""
