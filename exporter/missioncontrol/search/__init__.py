"""Full-text search: an index in a file of its own, filled behind the store, lost without harm.

search          what the rest of the receiver calls; index_process fills the index in a process of its own
index           the file of the index; event_text says which words of an event are searchable
search_query    what a query means, which events match, and the excerpts that are shown
"""
