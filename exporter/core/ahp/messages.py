"""Reading one frame: what a host may send, and everything else. Never raises, and holds nothing back."""

from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import msgspec

from exporter.core.ahp.values import Json, mapping, number, text
from exporter.core.events.envelope import REFUSALS

ID_LENGTH_MAX: Final = 128
_NUMBER_MAX: Final = 1 << 53


@dataclass(frozen=True, slots=True)
class Response:
    """A request of ours was answered."""

    id: int
    result: Any = field(repr=False)


@dataclass(frozen=True, slots=True)
class ErrorResponse:
    """A request of ours was refused. What the host says with it is not kept: it may say a token."""

    id: int
    code: int
    versions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Told:
    """A notification, an action being one; `raw` are the bytes of it."""

    method: str
    params: Json = field(repr=False)
    raw: bytes = field(repr=False, default=b"")


@dataclass(frozen=True, slots=True)
class Asked:
    """A request of the host."""

    id: int | str
    method: str


@dataclass(frozen=True, slots=True)
class Rubbish:
    """What is none of these. Says why, never what came."""

    reason: str


Message: TypeAlias = Response | ErrorResponse | Told | Asked | Rubbish


def hear(frame: str | bytes) -> Message:
    """Return what a frame says."""
    if not isinstance(frame, str):
        return Rubbish("a binary frame")
    try:
        raw = frame.encode()
        message = msgspec.json.decode(raw)
    except REFUSALS:
        return Rubbish("no JSON, or too deep")
    except UnicodeEncodeError:
        return Rubbish("no Unicode")
    if not isinstance(message, dict):
        return Rubbish("no object")
    method, id = message.get("method"), message.get("id")
    if isinstance(method, str):
        if "id" not in message:
            return Told(method, mapping(message, "params"), raw)
        usable = _usable(id)
        return Rubbish("a request with no usable id") if usable is None else Asked(usable, method)
    if not isinstance(id, int) or isinstance(id, bool) or abs(id) > _NUMBER_MAX:
        return Rubbish("neither a request nor an answer")
    if "error" in message:
        return _failure(id, mapping(message, "error"))
    return Response(id, message.get("result")) if "result" in message else Rubbish("an answer with nothing in it")


def _usable(id: Any) -> int | str | None:
    if isinstance(id, str):
        return id if len(id) <= ID_LENGTH_MAX else None
    return id if isinstance(id, int) and not isinstance(id, bool) and abs(id) <= _NUMBER_MAX else None


def _failure(id: int, error: Json) -> ErrorResponse:
    told = mapping(error, "data").get("supportedVersions")
    versions = told[:16] if isinstance(told, list) else []
    usable = tuple(str(each) for each in versions if isinstance(each, str | int) and _is_version(str(each)))
    return ErrorResponse(id, number(error, "code") or 0, usable)


def _is_version(version: str) -> bool:
    return len(version) <= 32 and all(each.isascii() and (each.isalnum() or each in ".^~+-") for each in version)


def uri_of(holder: Json) -> str:
    """Return the address in a summary, a snapshot or the parameters of a notification."""
    return text(holder, "resource") or text(holder, "session") or text(holder, "channel")
