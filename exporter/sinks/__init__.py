"""Where events go: one interface, and a module or package per sink.

sink            the interface of every sink; `tests/sinks/contract.py` checks each of them
mission_control, embedded   a Mission Control over HTTP, and the one in this process
otlp            one signal of an OTLP endpoint
archive         compressed files with a manifest per session
transport, threads   HTTP and certificates, blocking calls outside the event loop
roots           the certificates of the system
retry           how long to wait before the next attempt
"""
