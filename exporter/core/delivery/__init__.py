"""How the events of one session reach one sink: every decision, no input or output.

position           what a changed file means, and how far a sink has it: the mark
segment            lines to a redacted segment; batches sends it whole or in halves (and states the order of effects)
session_state      the state of one session at one sink: what is due, and what every answer changes (the table)
reconcile          one way through a file, from the mark on or compared with what the sink has
verdict, gate      what an answer means; whether requests may be sent to the sink
schedule, gathering  whose turn it is; how long a session's events gather before they are sent
backfill_plan      which sessions a request for history means
history_needs      what a store of telemetry needs to keep history
"""
