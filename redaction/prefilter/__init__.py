"""Where may a secret be? One pass over the raw bytes for all rules.

gate            the compiled patterns; cache keeps them on disk
prefilter       which rules look where, in two readings of a line
ended           names that nothing is given to, dismissed early
"""
