"""Rules that tell a secret by what is around it: for each family a table, and the functions that its rows name.

table               reads the tables; `common.toml` has the fragments of expressions that several of them use
extractors          what extracts the secrets of a row: general functions, or one of the family
assignments         a value next to the name that it is assigned to
pairs               a value whose name is elsewhere: tags, members, lines above, cells, sentences
tables              columns of tables, INSERT and COPY
prose               sentences that tell a password, in many languages
addresses, headers  URLs and connection strings; HTTP
command_line        options, arguments of known commands, pipes, SQL
credential_files    files that hold credentials
products            secrets of particular products
keys                private keys and tokens with a structure
"""
