"""From a request body to rows: each change of the store is one write job.

batch           a body as events: exact bytes, envelope, what the store keeps
answers         masks what printing commands answered, in batches of uploaders that do not redact
write_jobs      registers sessions, stores batches, hides events, records reports, deletes sessions
event_order     the place of each new event, by the order of the file
agent_attribution   which sub-agent an event belongs to, and the tree of agents
"""
