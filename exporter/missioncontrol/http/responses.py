"""The answers that are the same everywhere: JSON, errors with a kind and a hint, and `304` where nothing changed."""

from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from exporter.missioncontrol.store.eraser import TextNotErasedError
from exporter.missioncontrol.store.port import StoreAway, StoreError
from exporter.missioncontrol.store.session_row import (
    BadCursorError,
    DeletedSessionError,
    ExpiredSessionError,
    ForeignExporterError,
    ForeignSessionError,
    RestoreNeedsAdminError,
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


def bad_cursor() -> ApiError:
    """Return the error for a cursor that was never given out."""
    return ApiError(400, "bad_cursor", "There is no such place to go on from.", hint="Begin at the first page again.")


_RESTORE: Final = "Only a restore brings it back."
# From the particular to the general.
_REFUSALS: Final = {
    UnknownSessionError: (404, "unknown_session", "There is no session {}.", "Register it with POST /agents/sessions."),
    ExpiredSessionError: (410, "expired_session", "Session {} is past its time here.", _RESTORE),
    DeletedSessionError: (410, "deleted_session", "Session {} was deleted here.", _RESTORE),
    ForeignSessionError: (
        409,
        "session_of_another_token",
        "Session {} belongs to another token.",
        "Only the token that registered it, or one with full access, may change it.",
    ),
    ForeignExporterError: (
        409,
        "exporter_of_another_token",
        "Exporter {} belongs to another token.",
        "Only the token that reported it first, or one with full access, may report it.",
    ),
    RestoreNeedsAdminError: (
        403,
        "restore_needs_admin",
        "Session {} was deleted here, and this token may not restore it.",
        "An administrator restores it with: exporter mission-control restore {}",
    ),
    OverflowError: (400, "number_too_large", "A number in it is too large: {}.", "Numbers have at most 64 bits."),
    TextNotErasedError: (
        503,
        "text_still_in_log",
        "The session is deleted and shown no more, but its text is still in the store's log, because"
        " another program reads the store.",
        "End that program (a backup, a sqlite3 shell). It is tried again until it is done;"
        " the same DELETE tells whether it is.",
    ),
    StoreAway: (503, "store_away", "The store cannot be reached: {}.", "Nothing was stored; send it again later."),
    StoreError: (503, "store_failed", "The store did not take it: {}.", "Nothing was stored; send it again."),
}
_RETRY_SECONDS: Final = {"text_still_in_log": 10, "store_failed": 1, "store_away": 5}


@contextmanager
def api_errors() -> Iterator[None]:
    """Raise what the store refuses as an `ApiError`, which says what can be done about it."""
    try:
        yield
    except BadCursorError as error:
        raise bad_cursor() from error
    except tuple(_REFUSALS) as error:
        status, kind, message, hint = next(row for type, row in _REFUSALS.items() if isinstance(error, type))
        headers = {"Retry-After": str(_RETRY_SECONDS[kind])} if kind in _RETRY_SECONDS else None
        # The text of an `UnknownSessionError` and the like is the session's id.
        raise ApiError(status, kind, message.format(error), hint=hint.format(error), headers=headers) from error


def tagged_answer(request: Request, content: bytes, *, media_type: str = "application/json") -> Response:
    """Return the content with its ETag, or 304 when the client has it already."""
    tag = f'"{blake2b(content, digest_size=12).hexdigest()}"'
    headers = {"ETag": tag, "Cache-Control": "no-cache"}
    known = {name.strip().removeprefix("W/") for name in request.headers.get("if-none-match", "").split(",")}
    if tag in known:
        return Response(status_code=304, headers=headers)
    return Response(content, media_type=media_type, headers=headers)
