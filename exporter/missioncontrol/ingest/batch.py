"""A request body as events: the exact bytes of each, its envelope, and the columns of its row.

msgspec finds the elements; what it refuses (lone surrogates, deep nesting) goes to the tolerant scanner. Bytes are
never decoded and encoded again, so what is stored is what was delivered. Neither makes more elements than are taken.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from itertools import islice
from typing import Any, Final

import msgspec

from exporter.core.events.digest import item
from exporter.core.events.envelope import REFUSALS, Envelope, decode
from exporter.core.events.json_scanner import STRING, NotJsonError, Steps, TooManyError, elements, members
from exporter.core.events.tool_calls import Commands
from exporter.missioncontrol.store import payloads

EVENTS_MAX: Final = 5000
REWOUND_MAX: Final = 100_000
"""How many ids may be rewound in one request; each costs the writer time."""
_TOOL_CALL: Final = b'"parentToolCallId"'


def key_of(id: str) -> int:
    """Return the number that ids are looked up by; two ids may share one."""
    return int.from_bytes(sha256(id.encode()).digest()[:8], "big", signed=True)


class BadBodyError(ValueError):
    """The body is not a JSON object with an `events` array."""


@dataclass(frozen=True, slots=True)
class Elements:
    """The bytes of each event in the body, and the rewound ids."""

    events: list[bytes]
    rewound: list[str]


class UploadedEvent(msgspec.Struct, frozen=True, gc=False):
    """One durable event as it is stored."""

    envelope: Envelope
    body: bytes
    sha256: bytes
    item: int
    key: int
    parent: int | None = None
    rules: tuple[str, ...] = ()
    """The rules by which something was masked here, on arrival."""
    large: tuple[payloads.LargeString, ...] = ()
    """Its large strings."""
    names_call: bool = False
    """Whether it may name its parent tool call."""


@dataclass(slots=True)
class Batch:
    """The events of one request by what happens to them: stored, only shown live, rejected."""

    durable: list[UploadedEvent] = field(default_factory=list)
    ephemeral: list[bytes] = field(default_factory=list)
    rejected: list[str] = field(default_factory=list)
    rewound: list[str] = field(default_factory=list)
    sender: int | None = None
    """The installation of the exporter that sent it, where it is known."""
    commands: Commands | None = None
    """The commands that print secrets, if the batch is redacted here: their answers are masked when it is stored."""
    calls_unknown: int = 0
    """How many answers there were whose call is not known here."""


_decode_ids: Final = msgspec.json.Decoder(list[str]).decode


@cache
def _decoder(events_max: int) -> msgspec.json.Decoder[Any]:
    """Return what reads a body as `events_max` fields and one that is set when there are more.

    msgspec makes an object for every element of a list before its length can be checked, and a body of 32 MiB may have
    16 million. Elements for which an array-like struct has no field are passed over at no cost.
    """
    element = msgspec.Raw | msgspec.UnsetType
    fields = [(f"n{number}", element, msgspec.UNSET) for number in range(events_max + 1)]
    array = msgspec.defstruct("_Array", fields, array_like=True)
    return msgspec.json.Decoder(
        msgspec.defstruct("_Body", [("events", array), ("rewound", msgspec.Raw, msgspec.Raw(b"[]"))])
    )


def read_elements(body: bytes, events_max: int = EVENTS_MAX) -> Elements:
    """Return the exact bytes of each element of `events`.

    Raises `BadBodyError` when there is no such array, and `TooManyError` when it or `rewound` has too many elements.
    """
    try:
        found = _decoder(events_max).decode(body)
    except REFUSALS:
        return _scan_elements(body, events_max)
    raws = msgspec.structs.astuple(found.events)
    if raws[-1] is not msgspec.UNSET:
        raise TooManyError(events_max)
    count = raws.index(msgspec.UNSET)
    return Elements([bytes(raw) for raw in raws[:count]], _ids(bytes(found.rewound)))


def _scan_elements(body: bytes, events_max: int) -> Elements:
    spans: list[tuple[int, int]] = []

    def scan_events(text: bytes, position: int, steps: Steps) -> int:
        spans[:], end = elements(text, position, events_max, steps)
        return end

    try:
        fields, end = members(body, len(body) - len(body.lstrip(b" \t\r\n")), {b"events": scan_events})
    except NotJsonError as error:
        raise BadBodyError(str(error)) from error
    if body[end:].strip(b" \t\r\n"):
        raise BadBodyError(f"text after the JSON object at byte {end}")
    if b"events" not in fields:
        raise BadBodyError("no array `events` in the body")
    rewound = _ids(body[slice(*fields[b"rewound"])]) if b"rewound" in fields else []
    return Elements([body[start:end] for start, end in spans], rewound)


def _ids(array: bytes) -> list[str]:
    if array.count(b'"') > 2 * REWOUND_MAX:
        strings = sum(1 for _ in islice(STRING.finditer(array), REWOUND_MAX + 1))
        if strings > REWOUND_MAX:
            raise TooManyError(REWOUND_MAX)
    try:
        return _decode_ids(array)
    except REFUSALS as error:
        raise BadBodyError(f"`rewound` is not an array of ids: {error}") from error


def sort_out(
    found: Elements,
    *,
    event_bytes_max: int,
    redact: Callable[[bytes], tuple[bytes, tuple[str, ...]] | None] | None = None,
) -> Batch:
    """Return what of the request is stored. `redact` gives (bytes, rules), or None for what must not be stored.

    An event without a usable id is rejected as `#INDEX`, since there is no other name for it.
    """
    batch = Batch(rewound=found.rewound)
    previous: UploadedEvent | None = None
    for index, raw in enumerate(found.events):
        body, rules = raw, tuple[str, ...]()
        if redact is not None:
            redacted = redact(raw)
            if redacted is None:
                batch.rejected.append(decode(raw).id or f"#{index}")
                continue
            body, rules = redacted
        envelope = decode(body)
        if not isinstance(envelope, Envelope):
            batch.rejected.append(envelope.id or f"#{index}")
        elif envelope.ephemeral:
            batch.ephemeral.append(body)
        elif len(body) > event_bytes_max:
            batch.rejected.append(envelope.id)
        else:
            hashed = sha256(body).digest()
            parent = _parent_key(envelope.parentId, previous)
            item_ = item(envelope.id, hashed)
            key, names_call = key_of(envelope.id), _TOOL_CALL in body
            previous = UploadedEvent(envelope, body, hashed, item_, key, parent, rules, payloads.find(body), names_call)
            batch.durable.append(previous)
    return batch


def _parent_key(parent_id: str | None, previous: UploadedEvent | None) -> int | None:
    if parent_id is None:
        return None
    if previous is not None and previous.envelope.id == parent_id:
        return previous.key
    try:
        return key_of(parent_id)
    except UnicodeEncodeError:  # a lone surrogate: no event has such an id
        return None
