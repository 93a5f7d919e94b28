"""Where may a secret be? One pass over the raw bytes for all rules.

gate            compiled expressions: Hyperscan or, without it, `re`
cache           compiled rules on disk
prefilter       which rules run at which hits, in two readings of a line
"""
