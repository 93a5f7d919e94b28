"""Reads an event leniently: the envelope at once, its `data` on demand.

Bad input is a value here. A line that holds no event reads as None; a field of an unexpected type, or a number that
is out of all bounds, reads as absent; a line that the fast reader refuses (lone surrogates, deep nesting) is read by a
slower one as far as possible.
"""

import json
import math
import re
from datetime import UTC, datetime
from functools import cache
from types import UnionType
from typing import Any, Final, TypeVar, get_args, get_origin, get_type_hints

import msgspec

_MINUTES_CACHED_MAX: Final = 4096
# What a timestamp says behind its minute, and how long that is.
_SECONDS_NS: Final = {f"{second:02}.": second * 1_000_000_000 for second in range(60)}
_MILLISECONDS_NS: Final = {f"{millisecond:03}Z": millisecond * 1_000_000 for millisecond in range(1000)}
_TIME_NS_MAX: Final = 2**63 - 1
_CACHED_NS_MAX: Final = _TIME_NS_MAX - 60_000_000_000
_DIGITS_MAX: Final = 4_000
_USUAL: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", re.ASCII)
# What msgspec and json raise on bytes they do not read; everything else would be a defect and is not caught.
_REFUSALS: Final = (msgspec.MsgspecError, ValueError, RecursionError)

T = TypeVar("T", bound=msgspec.Struct)


class Event(msgspec.Struct, gc=False, rename={"parent_id": "parentId", "agent_id": "agentId"}):
    """One event. `time_ns` is 0 when the timestamp cannot be read; `data` is the raw JSON of its data, or empty.

    `known` caches the payload that was read first; most readers need the same one.
    """

    type: str
    id: str
    timestamp: str = ""
    parent_id: str | None = None
    agent_id: str | None = None
    data: msgspec.Raw = msgspec.Raw()
    ephemeral: bool = False
    time_ns: int = 0
    known: Any = None


_decode_event: Final = msgspec.json.Decoder(Event).decode
_minutes: Final[dict[str, int]] = {}
_decoders: Final[dict[type, Any]] = {}


def read(line: bytes) -> Event | None:
    """Return the event of a line, or None when it holds none: no JSON object, or one without a type and an id.

    An empty type counts as unknown; an id is never empty.
    """
    try:
        event: Event | None = _decode_event(line)
    except _REFUSALS:
        event = _read_slowly(line)
    if event is None or not event.id:
        return None
    # Here and not where the event is decoded, whatever the line claims them to be.
    event.known = None
    event.time_ns = nanoseconds(event.timestamp)
    return event


def payload(event: Event, kind: type[T]) -> T:
    """Return the fields of an event's data that `kind` names; what is absent or of another type has its default."""
    if type(event.known) is kind:
        return event.known
    decoder = _decoders.get(kind)
    if decoder is None:
        decoder = _decoders[kind] = msgspec.json.Decoder(kind).decode
    try:
        found: T = decoder(event.data)
    except _REFUSALS:
        found = _convert(_loads(bytes(event.data)), kind)
    if event.known is None:
        event.known = found
    return found


def items(raw: msgspec.Raw, kind: type[T]) -> list[T]:
    """Return the objects in a raw JSON list, as far as `kind` names their fields; nothing when it is no list."""
    try:
        parts = msgspec.json.decode(raw, type=list[msgspec.Raw])
    except _REFUSALS:
        return []
    return [_object(part, kind) for part in parts if bytes(part).lstrip().startswith(b"{")]


def _object(text: msgspec.Raw, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(text, type=kind)
    except _REFUSALS:
        return _convert(_loads(bytes(text)), kind)


def nanoseconds(timestamp: str) -> int:
    """Return a timestamp as nanoseconds since 1970, or 0 when it is none."""
    try:
        return _minutes[timestamp[:17]] + _SECONDS_NS[timestamp[17:20]] + _MILLISECONDS_NS[timestamp[20:]]
    except KeyError:
        return _nanoseconds_slowly(timestamp)


def _nanoseconds_slowly(timestamp: str) -> int:
    try:
        moment = datetime.fromisoformat(timestamp)
    except ValueError:
        return 0
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
    since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    whole = (since.days * 86_400 + since.seconds) * 1_000_000_000
    if _USUAL.match(timestamp) and 0 < whole < _CACHED_NS_MAX:
        if len(_minutes) >= _MINUTES_CACHED_MAX:
            _minutes.clear()
        _minutes[timestamp[:17]] = whole - since.seconds % 60 * 1_000_000_000
    return min(max(whole + since.microseconds * 1_000, 0), _TIME_NS_MAX)


def _read_slowly(line: bytes) -> Event | None:
    fields = _loads(line)
    if fields is None:
        return _read_envelope_around_data(line)
    if not (isinstance(fields.get("type"), str) and isinstance(fields.get("id"), str)):
        return None
    return _convert(fields, Event)


def _read_envelope_around_data(line: bytes) -> Event | None:
    """Read an event whose data nests too deep for any reader: the fields before and behind it."""
    start, end = line.find(b',"data":'), line.rfind(b',"id":')
    if not 0 < start < end:
        return None
    try:
        return _decode_event(line[:start] + line[end:])
    except _REFUSALS:
        return None


def _loads(text: bytes) -> dict[str, Any] | None:
    """Parse JSON of which the fast reader wants nothing; text that UTF-8 cannot hold is replaced in it."""
    try:
        parsed = json.loads(text, parse_constant=lambda _: None, parse_int=_integer, parse_float=_finite)
        cleaned = json.dumps(parsed, ensure_ascii=False).encode("utf-8", "replace")
        value = json.loads(cleaned)
    except _REFUSALS:
        return None
    return value if isinstance(value, dict) else None


def _integer(digits: str) -> int | None:
    """Return a whole number, or None when it is so long that Python refuses it, and with it all that it stands in."""
    return int(digits) if len(digits) <= _DIGITS_MAX else None


def _finite(digits: str) -> float | None:
    number = float(digits)
    return number if math.isfinite(number) else None


def _convert(fields: object, kind: type[T]) -> T:
    """Build `kind` from what is usable of `fields`."""
    if not isinstance(fields, dict):
        return kind()
    hints = _hints(kind)
    kept: dict[str, Any] = {}
    for field in msgspec.structs.fields(kind):
        if field.encode_name not in fields:
            continue
        value, hint = fields[field.encode_name], hints[field.name]
        if hint is msgspec.Raw:
            kept[field.name] = msgspec.Raw(json.dumps(value).encode())
        elif (inner := _struct_in(hint)) is not None:
            if isinstance(value, dict) or inner is hint:
                kept[field.name] = _convert(value, inner)
        elif get_origin(hint) is dict and (inner := _struct_in(get_args(hint)[1])) is not None:
            kept[field.name] = (
                {key: _convert(one, inner) for key, one in value.items()} if isinstance(value, dict) else {}
            )
        else:
            try:
                kept[field.name] = msgspec.convert(value, hint)
            except _REFUSALS:
                continue
    return kind(**kept)


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)


def _struct_in(hint: object) -> type[msgspec.Struct] | None:
    """Return the struct that a field holds, or may hold."""
    choices = get_args(hint) if isinstance(hint, UnionType) else (hint,)
    return next((one for one in choices if isinstance(one, type) and issubclass(one, msgspec.Struct)), None)
