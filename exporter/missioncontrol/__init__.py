"""The embedded Mission Control: a receiver, its store, its API and its page."""
