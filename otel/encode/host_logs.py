"""Converts an agent host's own log records from OTLP JSON to OTLP protobuf.

Never raises: values of an unexpected type are left out.
"""

from base64 import b64decode
from binascii import Error
from collections.abc import Callable
from struct import pack
from typing import Any, Final

from otel.encode.varint import UINT64_MAX, counted, signed, utf8, varint

DEPTH_MAX: Final = 16
RECORDS_MAX: Final = 4096


def log_request(payload: Any) -> bytes:
    """Return the request that holds the `resourceLogs` of a JSON value; requests put together are one request."""
    return b"".join(counted(b"\x0a", _of_resource(each)) for each in _objects(payload, "resourceLogs"))


def _of_resource(logs: dict[str, Any]) -> bytes:
    resource = counted(b"\x0a", _attributes(_object(logs, "resource"), b"\x0a"))
    scopes = b"".join(counted(b"\x12", _of_scope(each)) for each in _objects(logs, "scopeLogs"))
    return resource + scopes + _text(b"\x1a", logs.get("schemaUrl"))


def _of_scope(logs: dict[str, Any]) -> bytes:
    given = _object(logs, "scope")
    scope = _text(b"\x0a", given.get("name")) + _text(b"\x12", given.get("version")) + _attributes(given, b"\x1a")
    records = b"".join(counted(b"\x12", _record(each)) for each in _objects(logs, "logRecords")[:RECORDS_MAX])
    return counted(b"\x0a", scope) + records + _text(b"\x1a", logs.get("schemaUrl"))


def _record(given: dict[str, Any]) -> bytes:
    body = given.get("body")
    return b"".join(
        (
            b"\x09" + pack("<Q", _number(given.get("timeUnixNano"))),
            b"\x10" + varint(min(_number(given.get("severityNumber")), 24)),
            _text(b"\x1a", given.get("severityText")),
            counted(b"\x2a", _value(body, 0)) if isinstance(body, dict) else b"",
            _attributes(given, b"\x32"),
            b"\x45" + pack("<I", _number(given.get("flags")) & 0xFFFF_FFFF),
            _id(b"\x4a", given.get("traceId"), 16),
            _id(b"\x52", given.get("spanId"), 8),
            b"\x59" + pack("<Q", _number(given.get("observedTimeUnixNano"))),
            _text(b"\x62", given.get("eventName")),
        )
    )


def _attributes(holder: dict[str, Any], tag: bytes) -> bytes:
    return b"".join(counted(tag, _pair(each, 0)) for each in _objects(holder, "attributes"))


def _pair(given: dict[str, Any], depth: int) -> bytes:
    return _text(b"\x0a", given.get("key")) + counted(b"\x12", _value(_object(given, "value"), depth + 1))


def _value(given: dict[str, Any], depth: int) -> bytes:
    if depth > DEPTH_MAX:
        return b""
    for name, write in _VALUES.items():
        if name in given:
            return write(given[name], depth)
    return b""


def _bytes(given: Any) -> bytes:
    try:
        return b64decode(given) if isinstance(given, str) else b""
    except (Error, ValueError):
        return b""


def _values(given: Any, depth: int, write: Callable[[dict[str, Any], int], bytes]) -> bytes:
    return b"".join(counted(b"\x0a", write(each, depth)) for each in _objects(given, "values"))


def _integer(given: Any) -> int:
    """JSON gives whole numbers of 64 bits as text."""
    try:
        return int(given) if isinstance(given, str | int) and len(str(given)) <= 20 else 0
    except ValueError:
        return 0


_VALUES: Final[dict[str, Callable[[Any, int], bytes]]] = {
    "stringValue": lambda given, _: counted(b"\x0a", utf8(given) if isinstance(given, str) else b""),
    "boolValue": lambda given, _: b"\x10" + (b"\x01" if given is True else b"\x00"),
    "intValue": lambda given, _: b"\x18" + signed(_integer(given)),
    "doubleValue": lambda given, _: b"\x21" + pack("<d", _double(given)),
    "arrayValue": lambda given, depth: counted(b"\x2a", _values(given, depth + 1, _value)),
    "kvlistValue": lambda given, depth: counted(b"\x32", _values(given, depth, _pair)),
    "bytesValue": lambda given, _: counted(b"\x3a", _bytes(given)),
}


def _double(given: Any) -> float:
    try:
        return float(given) if isinstance(given, int | float | str) else 0.0
    except (ValueError, OverflowError):
        return 0.0


def _number(given: Any) -> int:
    return min(max(_integer(given), 0), UINT64_MAX)


def _id(tag: bytes, given: Any, length: int) -> bytes:
    try:
        known = bytes.fromhex(given) if isinstance(given, str) else b""
    except ValueError:
        return b""
    return counted(tag, known) if len(known) == length else b""


def _text(tag: bytes, given: Any) -> bytes:
    return counted(tag, utf8(given)) if isinstance(given, str) and given else b""


def _object(holder: dict[str, Any], name: str) -> dict[str, Any]:
    value = holder.get(name)
    return value if isinstance(value, dict) else {}


def _objects(holder: Any, name: str) -> list[dict[str, Any]]:
    value = holder.get(name) if isinstance(holder, dict) else None
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
