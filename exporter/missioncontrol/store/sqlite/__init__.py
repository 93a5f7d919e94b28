"""SQLite, the engine of the store.

schema          the tables, their version, and what happens to a file that is no database any more
wal             the write-ahead log beside the file
erase           removes deleted text from the file and the log
"""
