"""The answers that are the same everywhere: JSON, errors with a kind and a hint, and `304` where nothing changed."""

from hashlib import blake2b
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response


class ApiError(Exception):
    """Becomes `{"error": {"kind", "message", "hint"}}` with this status."""

    def __init__(
        self, status: int, kind: str, message: str, *, hint: str = "", headers: dict[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind
        self.message = message
        self.hint = hint
        self.headers = headers or {}


def json_answer(value: Any, *, status: int = 200) -> Response:
    """Return the value as JSON."""
    return Response(msgspec.json.encode(value), status_code=status, media_type="application/json")


def error_answer(error: ApiError) -> Response:
    """Return the error in the shape that every client of ours reads."""
    content = msgspec.json.encode({"error": {"kind": error.kind, "message": error.message, "hint": error.hint}})
    return Response(content, status_code=error.status, media_type="application/json", headers=error.headers)


async def answer_api_error(_: Request, error: Exception) -> Response:
    """Turn an `ApiError` raised by an endpoint into its answer."""
    assert isinstance(error, ApiError)
    return error_answer(error)


def tagged_answer(request: Request, content: bytes, *, media_type: str = "application/json") -> Response:
    """Return the content with its ETag, or 304 when the client has it already."""
    tag = f'"{blake2b(content, digest_size=12).hexdigest()}"'
    headers = {"ETag": tag, "Cache-Control": "no-cache"}
    known = {name.strip().removeprefix("W/") for name in request.headers.get("if-none-match", "").split(",")}
    if tag in known:
        return Response(status_code=304, headers=headers)
    return Response(content, media_type=media_type, headers=headers)
