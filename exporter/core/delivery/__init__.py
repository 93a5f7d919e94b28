"""How the events of one session reach one sink: every decision, no input or output.

follow, position   what a changed file means, and where a sink stands in it
segment         lines to a redacted segment; batches sends it whole or in halves (the order of effects is stated there)
verdict         what an answer means; gate whether the sink may be asked at all
reconcile       what the sink has against what the file holds; schedule and backfill_plan say whose turn it is
"""
