"""The Agent Host Protocol for an observer: parses frames, tracks the state of a host, and makes events from it.

messages, requests, dialect, values, errors   frames in, frames out, in three dialects
observer, subscriptions, session, chat        one host, its sessions, their conversations
chat_state, tools, fetching                   a copy of the host's state, and the content fetched for it
turn, drafts, ephemeral, checkpoint           events of a turn, and which of them have been recorded
"""
