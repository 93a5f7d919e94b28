"""The installed command: real processes, real files, real signals, a real receiver."""
