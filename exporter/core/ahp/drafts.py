"""An event before it is encoded as a line; the same history always gives the same event id."""

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
    """An event of a session. `agent` is the address of the child chat it comes from, None for the main chat."""

    id: str
    type: str
    at: str
    data: Json = field(repr=False)
    agent: str | None = None
    is_ephemeral: bool = False


def id_of(*parts: Any) -> str:
    """Return an id derived from the identity of an event only. It equals `uuid5` and is computed faster."""
    name = "|".join([str(part) for part in parts]).encode("utf-8", "replace")
    digest = bytearray(sha1(NAMESPACE.bytes + name, usedforsecurity=False).digest()[:16])
    digest[6], digest[8] = digest[6] & 0x0F | 0x50, digest[8] & 0x3F | 0x80
    made = digest.hex()
    return f"{made[:8]}-{made[8:12]}-{made[12:16]}-{made[16:20]}-{made[20:]}"


def is_made(id: str) -> bool:
    """Tell whether an id was made by `id_of`; the CLI's own ids are random."""
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
    except (OverflowError, UnicodeEncodeError):  # numbers and characters that msgspec refuses
        return json.dumps(event).encode()


@lru_cache(maxsize=64)
def moment(seconds: float) -> str:
    """Return a time in the format of events."""
    at = datetime.fromtimestamp(min(max(seconds, 0.0), SECONDS_MAX), UTC)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def seconds_of(value: Any) -> float | None:
    """Return a host's time, given in milliseconds or as text, in seconds; None if it is invalid."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value / 1000 if 0 <= value <= SECONDS_MAX * 1000 else None
    try:
        return datetime.fromisoformat(value).timestamp() if isinstance(value, str) else None
    except (ValueError, OverflowError):
        return None
