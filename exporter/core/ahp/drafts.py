"""An event before it is a line: with an id that is the same whenever the same history is read."""

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import sha1
from typing import Any, Final
from uuid import UUID

import msgspec

from exporter.core.ahp.values import Json

NAMESPACE: Final = UUID("6d9d2c1f-62f4-5a0b-8d31-1f0f6d1c7a44")
SECONDS_MAX: Final = 253_402_300_799.0


@dataclass(frozen=True, slots=True)
class Draft:
    """An event of a session; `agent` is the address of the child chat it came from, None for the session's own."""

    id: str
    type: str
    at: str
    data: Json = field(repr=False)
    agent: str | None = None
    is_ephemeral: bool = False


def id_of(*parts: Any) -> str:
    """Return an id made from what an event is, and from nothing else: the `uuid5` of it, made with less ado."""
    name = "|".join([str(part) for part in parts])
    try:
        known = name.encode()
    except UnicodeEncodeError:
        known = name.encode("utf-8", "replace")
    digest = bytearray(sha1(NAMESPACE.bytes + known, usedforsecurity=False).digest()[:16])
    digest[6], digest[8] = digest[6] & 0x0F | 0x50, digest[8] & 0x3F | 0x80
    made = digest.hex()
    return f"{made[:8]}-{made[8:12]}-{made[12:16]}-{made[16:20]}-{made[20:]}"


def is_made(id: str) -> bool:
    """Tell whether an id was made by `id_of`; the CLI's own are random ones."""
    try:
        return UUID(id).version == 5
    except ValueError:
        return False


def write(draft: Draft, parent: str | None) -> bytes:
    """Return the line of an event."""
    event: Json = {"type": draft.type, "data": draft.data, "id": draft.id, "timestamp": draft.at, "parentId": parent}
    if draft.agent is not None:
        event["agentId"] = draft.agent
    if draft.is_ephemeral:
        event["ephemeral"] = True
    try:
        return msgspec.json.encode(event)
    except (OverflowError, UnicodeEncodeError):  # numbers and characters that only a hostile host sends
        return json.dumps(event).encode()


@lru_cache(maxsize=64)
def moment(seconds: float) -> str:
    """Return a time as events have it."""
    return (
        datetime.fromtimestamp(min(max(seconds, 0.0), SECONDS_MAX), UTC)
        .isoformat(timespec="milliseconds")
        .replace("+00:00", "Z")
    )


def seconds_of(told: Any) -> float | None:
    """Return a time that a host gave, in milliseconds or as a text."""
    if isinstance(told, int | float) and not isinstance(told, bool):
        return told / 1000 if 0 <= told <= SECONDS_MAX * 1000 else None
    try:
        return datetime.fromisoformat(told).timestamp() if isinstance(told, str) else None
    except (ValueError, OverflowError):
        return None
