"""Removes the text of deleted sessions from the database file and its log.

SQLite leaves copies of deleted rows in the free space of pages and in the write-ahead log, so a DELETE alone does
not erase text. `pending` records what is left to do in the transaction of the delete, `free_space` overwrites the
unused parts of pages, and `eraser` repeats both until nothing of the text is in any file.
"""
