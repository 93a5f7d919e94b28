"""The engine of the store on PostgreSQL, for any number of receivers beside each other (extra `fleet`).

connection      a connection that is what it must be: schema, role, durability; errors of the engine as those of the port
database        the port's Database inside a transaction of one tenant
text            texts with NUL, which the engine does not take
store           the port's Store: every job a transaction, again when the server asks for it
schema          versions of the tables as SQL; migrate applies them
"""
