"""SQLite, the engine of the store; the only package of the receiver that imports `sqlite3`.

database        a connection as the port's Database; opening a file with the tables of schema.sql, tenants.sql
store           the port's Store: one thread writes in group commits, others read beside it
erase           removes deleted text from the file and the log, which a DELETE does not do
"""
