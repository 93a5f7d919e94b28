"""The embedded Mission Control: a receiver, its store, its APIs and its pages.

http            who may enter, the upload API, the read API
ingest          from a request body to rows
store           what is kept; search and live stand beside it
pages           what people see
receiver, receivers   what the endpoints of one tenant share; those of all tenants
opening         a receiver opened in the exporter or alone
"""
