"""Live events that the CLI shows an extension and never writes.

source          the Unix socket that extensions connect to
extension       installs, inspects and removes the extension (`extension.mjs`)
"""
