"""Everything that speaks HTTP: who may enter, how much is read, and the two APIs.

app             the ASGI application and its routes; server and connection put it on a port
guard, login    who may speak to the receiver; peer tells the user at the other end of a loopback connection
request_body, request_intake   bodies within limits, batches decoded and redacted off the event loop
upload_api      what exporters and the CLI call, below /agents
read_api, search_api           what people and programs call, below /api/v1
query_params, responses        shared by all: what a query asks for, and answers and errors as HTTP
event_annotations, metrics     parts of answers; page_routes says where the pages are
"""
