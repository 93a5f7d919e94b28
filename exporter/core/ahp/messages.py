"""Parses one frame into a message. Never raises; what is no valid message becomes an `InvalidFrame`."""

from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import msgspec

from exporter.core.ahp.values import Json, mapping, number, text
from exporter.core.events.envelope import REFUSALS

ID_LENGTH_MAX: Final = 128
_NUMBER_MAX: Final = 1 << 53


@dataclass(frozen=True, slots=True)
class Response:
    """The result of a request of ours."""

    id: int
    result: Any = field(repr=False)


@dataclass(frozen=True, slots=True)
class ErrorResponse:
    """The error of a request of ours. The host's message is dropped: it may contain a token."""

    id: int
    code: int
    versions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HostNotification:
    """A notification, such as an action; `raw` is the whole frame."""

    method: str
    params: Json = field(repr=False)
    raw: bytes = field(repr=False, default=b"")


@dataclass(frozen=True, slots=True)
class HostRequest:
    """A request of the host."""

    id: int | str
    method: str


@dataclass(frozen=True, slots=True)
class InvalidFrame:
    """A frame that is no valid message. `reason` never quotes the frame."""

    reason: str


Message: TypeAlias = Response | ErrorResponse | HostNotification | HostRequest | InvalidFrame


def parse_frame(frame: str | bytes) -> Message:
    """Return the message of a frame."""
    if not isinstance(frame, str):
        return InvalidFrame("a binary frame")
    try:
        raw = frame.encode()
        message = msgspec.json.decode(raw)
    except REFUSALS:
        return InvalidFrame("no JSON, or too deep")
    except UnicodeEncodeError:
        return InvalidFrame("no Unicode")
    if not isinstance(message, dict):
        return InvalidFrame("no object")
    method, id = message.get("method"), message.get("id")
    if isinstance(method, str):
        if "id" not in message:
            return HostNotification(method, mapping(message, "params"), raw)
        usable = _usable(id)
        return InvalidFrame("a request with no usable id") if usable is None else HostRequest(usable, method)
    if not isinstance(id, int) or isinstance(id, bool) or abs(id) > _NUMBER_MAX:
        return InvalidFrame("neither a request nor an answer")
    if "error" in message:
        return _failure(id, mapping(message, "error"))
    return Response(id, message.get("result")) if "result" in message else InvalidFrame("an answer with nothing in it")


def _usable(id: Any) -> int | str | None:
    if isinstance(id, str):
        return id if len(id) <= ID_LENGTH_MAX else None
    return id if isinstance(id, int) and not isinstance(id, bool) and abs(id) <= _NUMBER_MAX else None


def _failure(id: int, error: Json) -> ErrorResponse:
    offered = mapping(error, "data").get("supportedVersions")
    versions = offered[:16] if isinstance(offered, list) else []
    usable = tuple(str(each) for each in versions if isinstance(each, str | int) and _is_version(str(each)))
    return ErrorResponse(id, number(error, "code") or 0, usable)


def _is_version(version: str) -> bool:
    return len(version) <= 32 and all(each.isascii() and (each.isalnum() or each in ".^~+-") for each in version)


def uri_of(holder: Json) -> str:
    """Return the address in a summary, a snapshot or the parameters of a notification."""
    return text(holder, "resource") or text(holder, "session") or text(holder, "channel")
