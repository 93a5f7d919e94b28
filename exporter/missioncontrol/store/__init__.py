"""What the receiver keeps, behind a port to a database engine.

port            Database and Store: what an engine gives to jobs, and its errors; read it first
queries         reads that change nothing, and the cursors at which lists continue
session_row     a session while a job works on it; agent_tree shows its agents
payloads        large strings, stored once; redactions counts what was redacted; amounts are numbers of others
tokens          who may enter; ownership says whose session it is; tenants are teams; audit is the log of what they did,
                shares are links for who has no token, fleet is what exporters report
token_admin     what an administrator does from the command line: create and revoke tokens, restore a session
retention       how long and how much is kept; eraser repeats until no file contains deleted text
opening         the store of an address; copying moves one into another
sqlite, postgresql   the engines

An event comes in through `ingest.write_jobs`, which locks its session and writes with the port and neutral SQL.
"""
