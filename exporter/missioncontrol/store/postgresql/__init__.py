"""The engine of the store on PostgreSQL, for any number of receivers beside each other (extra `fleet`).

connection      a connection that is what it must be: schema, role, durability; errors as those of the port
database        the port's Database inside a transaction of one tenant; arrays and text are how it sends values
store           the port's Store: every job a transaction, again when the server asks for it
scan            searches the events themselves
worker_store    what an index worker reads, and how far it is
schema          versions of the tables as SQL; migrate applies them
"""
