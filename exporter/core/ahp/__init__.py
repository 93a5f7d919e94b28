"""The Agent Host Protocol for an observer: parses frames, tracks the state of a host, and makes events from it.

messages, requests, dialect, values   frames in, frames out, in three dialects
observer, subscriptions               one host, and the requests about its sessions
session, chat, chat_state             one session, its conversations, a copy of the host's state of each
turn, drafts, ephemeral, checkpoint   events of a turn, and which of them have been recorded
"""
