"""Fresh secrets of every kind that has a rule, planted into sessions and looked for in everything that comes out.

made      secrets of the shape of a rule's own example, from a seed
sessions  events in which they stand where text stands
road      the installed command with every kind of sink, and all bytes that it gives or keeps
search    which of many values are in some bytes
__main__  as many as asked for: `python -m tests.planted --secrets 1000000`
"""
