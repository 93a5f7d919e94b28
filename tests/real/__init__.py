"""The real Copilot CLI as a peer: install it, script its model, drive it, and follow it with the program."""
