"""Mutants of the code that decides: does a test notice when it is wrong? `make mutate`; outside CI.

places     what can be mutated: a span of a file, and what may stand there instead
python     places in Python, from its syntax tree
tables     places in tables of rules
reach      which tests call which function, measured once and kept in `.cache/mutation`
trial      one mutant in a copy of the tree, against the tests that reach it, in a process forked from a warm one
known      survivors that have a reason on record: `known.toml`
"""
