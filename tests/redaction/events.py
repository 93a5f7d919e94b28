"""Event lines as the CLI writes them, around any content."""

import json

SESSION = "3f0c1c1e-6a51-4c39-9d0c-5f1d7c1b9a10"
EVENT = "d7a4c0de-1111-4222-8333-944455556666"


def event(content: object, **data: object) -> bytes:
    """A durable event that holds the content."""
    body = {"toolCallId": "call_0a1b2c3d4e5f60718293a4b5", "sessionId": SESSION, "content": content, **data}
    return line({"type": "tool.execution_complete", "data": body})


def line(members: dict[str, object]) -> bytes:
    """An envelope with these members, in the CLI's key order and spelling."""
    envelope = {**members, "id": EVENT, "timestamp": "2026-11-18T09:58:19.660Z", "parentId": SESSION}
    return json.dumps(envelope, separators=(",", ":"), ensure_ascii=False).encode()


def content_of(redacted: bytes) -> object:
    """The content that the line holds now."""
    return json.loads(redacted)["data"]["content"]
