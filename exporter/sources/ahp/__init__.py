"""Sessions of an agent host (Agent Host Protocol over WebSocket); decisions are made in `core.ahp`.

source          one host: connects, feeds frames to the core, hands events on
connection      the WebSocket, the address of the host and its token
marks           the stored state of each session
"""
