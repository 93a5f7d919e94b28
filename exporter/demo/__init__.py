"""Made-up sessions for `up --demo`.

history   a fortnight of finished ones, from the short stories of `history.toml`
lock      how a session is held open
replay    one that plays live, from `session.jsonl`
"""
