"""SQLite, the engine of the store; the only package of the receiver that imports `sqlite3`.

database        a connection as the port's Database, and SQLite's errors as the port's
schema          the tables and their version; opening a file, setting a damaged one aside
store           the port's Store: one thread writes in group commits, others read beside it
erase           removes deleted text from the file and the log, which a DELETE does not do
"""
