"""Everything that speaks HTTP: who may enter, how much is read, and the two APIs.

app             the ASGI application, its routes and pages; server puts it on a port
peers           which user is at the other end of a loopback connection, as the kernel says
permissions     what the scope of a token permits; quota: how much a tenant may upload; audited: what is noted of it
guard           who may speak to the receiver: tokens, the login of a browser, the user at the other end on loopback
request_intake  bodies within limits, batches decoded and redacted off the event loop
upload_api      what exporters and the CLI call, below /agents
read_api        what people and programs call, below /api/v1, and the endpoints for monitoring
tenants_api     what operators call; fleet_api: exporters and their alerts; shares_api: links for who has no token
responses       shared by all: answers and errors as HTTP
"""
