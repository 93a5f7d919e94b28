"""The embedded Mission Control: a receiver, its store, its APIs and its pages.

http            who may enter, the upload API, the read API
ingest          from a request body to rows
store           what is kept; search and live stand beside it
pages           what people see
receiver, opening   what the endpoints share; a receiver opened in the exporter or alone
"""
