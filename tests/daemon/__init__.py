"""The delivery path, in process: real files, real SQLite, real HTTP on loopback."""
