"""One request and what is done with it, as a scripted peer sees them."""

import gzip
import json
import re
from dataclasses import dataclass, field
from typing import Any

import zstandard

_EVENTS = re.compile(r"/agents/sessions/([^/?]+)/events")


@dataclass(slots=True)
class Request:
    """One request as it arrived; `at` is on the monotonic clock."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    at: float
    answered_at: float = 0.0
    status: int | None = None

    @property
    def is_events(self) -> bool:
        return self.method == "POST" and _EVENTS.fullmatch(self.path) is not None

    @property
    def session(self) -> str:
        match = _EVENTS.fullmatch(self.path)
        return match[1] if match else ""

    def text(self) -> bytes:
        """Return the body without its content encoding."""
        match self.headers.get("content-encoding"):
            case "zstd":
                return zstandard.ZstdDecompressor().decompressobj().decompress(self.body)
            case "gzip":
                return gzip.decompress(self.body)
            case _:
                return self.body

    def json(self) -> Any:
        return json.loads(self.text())

    def ids(self) -> list[str]:
        """Return the ids of the events in the body."""
        return [event["id"] for event in self.json()["events"]]


@dataclass(slots=True)
class Reply:
    """What to do with one request. `status` None passes it to the receiver; a status alone is answered unheard.

    `heard` lets the receiver have it, whatever is answered. `lost` closes the connection instead of answering, and
    `hang` never answers.
    """

    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None
    delay: float = 0.0
    heard: bool | None = None
    lost: bool = False
    hang: bool = False
