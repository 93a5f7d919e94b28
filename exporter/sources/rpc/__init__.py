"""Sessions of a CLI server, observed over JSON-RPC without attaching to them.

source          one server, over as many connections as it takes; connection is one of them, framing cuts its bytes
messages        JSON-RPC messages, read leniently
session         one session: recorded events first, page by page, then live ones
"""
