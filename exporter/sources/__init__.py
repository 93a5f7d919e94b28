"""Where events come from: one package per stream.

files           session files of the CLI
rpc, ahp, tap   a CLI server, an agent host, the extension of a session
journals        files for sessions that have none
local_socket    a Unix socket for this user alone: the tap's, and that of a daemon's control
remote          what sources without a file have in common
event_types     the known types, for what is new to us to be named
"""
