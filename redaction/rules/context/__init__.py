"""Rules that tell a secret by what is around it; each module lists its rules in `RULES`.

assignments         a value next to the name that it is assigned to
pairs               a value whose name is elsewhere: tags, members, lines above, cells, columns, sentences
addresses, headers  URLs and connection strings; HTTP
command_line        options, arguments of known commands, pipes, SQL
credential_files    files that hold credentials
products            secrets of particular products
keys                private keys and tokens with a structure
extractors          what the families share
"""
