"""What the receiver keeps, and every question that is asked of it.

store           one writer in group commits, readers beside it
queries         reads that change nothing; session_row is a session while a job works on it; agent_tree its agents
payloads        large strings, kept once; redactions counts what was masked; tokens and token_admin who may enter
retention       how long and how much is kept; row_ids, bulk_insert and amounts serve the others
sqlite          the engine: schema, write-ahead log, and erasing deleted text from the file
"""
