"""Where events go: one protocol, and a module or package per sink.

sink            what a lane asks of every sink; `tests/sinks/contract.py` is what each of them keeps
mission_control, embedded   a Mission Control over HTTP, and the one in this process
otlp            one signal of an OTLP endpoint
archive         compressed files with a manifest per session
transport, threads, trust   HTTP, blocking calls off the event loop, certificates
retry           how long to wait before a sink is asked again
"""
