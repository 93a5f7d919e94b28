"""Is this value a secret? Decisions about one value, without its position.

secrecy         the decision; plain, words, placeholders, samples and digests are the reasons for No
names           what a name demands of its value; values where a value ends; cut tokens that the end of a text cut off
"""
