"""Full-text search: an index in a file of its own, filled behind the store, lost without harm.

index           the port to an index, and reading from the store what it does not have yet
fts5            the index as a SQLite file with FTS5
search          fills the index, in a process of its own while it is far behind, and answers
worker          keeps an index of every tenant beside PostgreSQL, tenant_index one of them; remote asks a worker
event_text      which words of an event are searchable
search_query    what a query means, which events match, and the excerpts that are shown
"""
