"""Events in, spans, measurements and log records out; no input or output.

traces, metrics  a package each; logs is one module
"""
