"""The answers that are the same everywhere: JSON, errors with a kind and a hint, and `304` where nothing changed."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import blake2b
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from exporter.missioncontrol.store.eraser import TextNotErasedError
from exporter.missioncontrol.store.port import StoreError
from exporter.missioncontrol.store.session_row import (
    BadCursorError,
    DeletedSessionError,
    ExpiredSessionError,
    UnknownSessionError,
)


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


def json_answer(value: Any) -> Response:
    """Return the value as JSON."""
    return Response(msgspec.json.encode(value), media_type="application/json")


def error_answer(error: ApiError) -> Response:
    """Return the error in the shape that every client of ours reads."""
    content = msgspec.json.encode({"error": {"kind": error.kind, "message": error.message, "hint": error.hint}})
    return Response(content, status_code=error.status, media_type="application/json", headers=error.headers)


def bad_cursor(_: Exception | None = None) -> ApiError:
    """Return the error for a cursor that was never given out."""
    return ApiError(400, "bad_cursor", "There is no such place to go on from.", hint="Begin at the first page again.")


# From the particular to the general; the text of an `UnknownSessionError` and the like is the session's id.
_REFUSALS: Final[dict[type[Exception], Callable[[Exception], ApiError]]] = {
    UnknownSessionError: lambda error: ApiError(
        404, "unknown_session", f"There is no session {error}.", hint="Register it with POST /agents/sessions."
    ),
    ExpiredSessionError: lambda error: ApiError(
        410, "expired_session", f"Session {error} is past its time here.", hint="Only a restore brings it back."
    ),
    DeletedSessionError: lambda error: ApiError(
        410, "deleted_session", f"Session {error} was deleted here.", hint="Only a restore brings it back."
    ),
    BadCursorError: bad_cursor,
    OverflowError: lambda error: ApiError(
        400, "number_too_large", f"A number in it is too large: {error}.", hint="Numbers have at most 64 bits."
    ),
    TextNotErasedError: lambda _: ApiError(
        503,
        "text_still_in_log",
        "The session is deleted and shown no more, but its text is still in the store's log, because"
        " another program reads the store.",
        hint="End that program (a backup, a sqlite3 shell). It is tried again until it is done;"
        " the same DELETE tells whether it is.",
        headers={"Retry-After": "10"},
    ),
    StoreError: lambda error: ApiError(
        503,
        "store_failed",
        f"The store did not take it: {error}.",
        hint="Nothing was stored; send it again.",
        headers={"Retry-After": "1"},
    ),
}


@contextmanager
def api_errors() -> Iterator[None]:
    """Raise what the store refuses as an `ApiError`, which says what can be done about it."""
    try:
        yield
    except tuple(_REFUSALS) as error:
        raise next(make(error) for kind, make in _REFUSALS.items() if isinstance(error, kind)) from error


def tagged_answer(request: Request, content: bytes, *, media_type: str = "application/json") -> Response:
    """Return the content with its ETag, or 304 when the client has it already."""
    tag = f'"{blake2b(content, digest_size=12).hexdigest()}"'
    headers = {"ETag": tag, "Cache-Control": "no-cache"}
    known = {name.strip().removeprefix("W/") for name in request.headers.get("if-none-match", "").split(",")}
    if tag in known:
        return Response(status_code=304, headers=headers)
    return Response(content, media_type=media_type, headers=headers)
