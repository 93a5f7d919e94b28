"""Is this value a secret? Decisions about one value and its name, not about its place in a line.

names           what a name demands of its value
secrecy         the decision: is this value random enough, and nothing else?
placeholders    templates, dummies, samples: values in place of a secret
words           how much of a value is words; `words.toml` holds the word lists
values          a value in a line: quick checks, the decision, where it ends, and whether it was cut off
"""
