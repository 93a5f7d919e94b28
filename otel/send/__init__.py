"""Sends OTLP requests over HTTP and gRPC; one request, one answer, no retries.

endpoint        where and how; sender and grpc send
answer          what the endpoint says, in the same terms for both
"""
