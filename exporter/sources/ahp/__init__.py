"""Sessions of an agent host (Agent Host Protocol over WebSocket); decisions are made in `core.ahp`.

source          one host: connects, feeds frames to the core, hands events on
connection      the WebSocket; address where the host is and its token
marks           the stored state of each session
"""
