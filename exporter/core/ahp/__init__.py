"""The Agent Host Protocol for somebody who only watches: what is said, what it means, and which events that makes.

messages, requests, dialect, values, errors   frames in, frames out, in three dialects
observer, subscriptions, session, chat        one host, its sessions, their conversations
chat_state, tools, fetching                   what a host knows, kept in step, and what is fetched for it
turn, drafts, ephemeral, checkpoint           events of a turn, and how far they have been told
"""
