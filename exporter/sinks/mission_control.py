"""The Mission Control sink: its HTTP requests, and the capabilities that it negotiates."""

import asyncio
import contextlib
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import UTC, datetime
from typing import Final
from urllib.parse import quote

import msgspec

from exporter.core.delivery.batches import BatchLimits
from exporter.core.delivery.verdict import (
    WORTH_REPEATING,
    Accepted,
    Later,
    LessCompression,
    Unauthorized,
    Verdict,
    acceptance_fault,
    verdict,
)
from exporter.core.names import INSTALLATION_HEADER, STORE_HEADER
from exporter.sinks.sink import Ack, Capabilities, Items, Registered, Registration, Sent, Sink
from exporter.sinks.transport import ANSWER_BYTES_MAX, HttpAnswer, NoAnswerError, Transport
from exporter.version import VERSION

FLOOR_EVENTS_MAX: Final = 500
FLOOR_BODY_BYTES: Final = 1_004_096
# A receiver may offer more than the floor; bodies larger than this save nothing and cost memory.
EVENTS_MAX: Final = 2_000
BODY_BYTES_MAX: Final = 2 << 20
FLOOR_EVENT_BYTES_MAX: Final = 8 << 20
ITEMS_BYTES_MAX: Final = 64 << 20
"""The largest list of a session's ids that is read."""
NO_SESSION_ID: Final = "the answer to POST /sessions has no session id"
_DELETED: Final = ("deleted_session", "expired_session")
"""What a Mission Control of ours calls an error of 410."""
_COMPRESS_FROM_BYTES: Final = 1_024
_ENCODINGS: Final = ("zstd", "gzip")


class _SessionAnswer(msgspec.Struct):
    id: str
    capabilities: Capabilities | None = None
    ack: Ack | None = None


class _EventsAnswer(msgspec.Struct):
    ack: Ack


class _ItemsAnswer(msgspec.Struct):
    items: list[tuple[str, str]]
    others: list[str] = []


class _SettingsAnswer(msgspec.Struct):
    salt: str
    wanted: bool


class _ReportAnswer(msgspec.Struct):
    epoch: str = ""
    changes: int = 0
    copies: int | None = None
    settings: _SettingsAnswer | None = None


def read_session(body: bytes) -> _SessionAnswer | None:
    """Return what the answer to a registration says, None when it names no session."""
    try:
        known = msgspec.json.decode(body, type=_SessionAnswer)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    return known if known.id else None


class _Error(msgspec.Struct):
    kind: str


class _ErrorAnswer(msgspec.Struct):
    error: _Error


@dataclass(eq=False)
class MissionControlSink(Sink):
    """One Mission Control. `token` is called before every request, so that a changed token file is noticed."""

    name: str
    url: str
    transport: Transport
    _: KW_ONLY
    token: Callable[[], str | None]
    compression: bool = True
    event_bytes_max: int = FLOOR_EVENT_BYTES_MAX
    owner_and_repo: tuple[str, str] | None = None
    installation: str = ""

    def __post_init__(self) -> None:
        self._encodings_refused: set[str] = set()

    def limits(self) -> BatchLimits:
        """Return what one request may hold: the floor, or the capabilities, less what a 413 has refused."""
        offer = self.capabilities
        body = min(BODY_BYTES_MAX, offer.max_body or FLOOR_BODY_BYTES, self.body_bytes_max)
        event = offer.max_event_bytes or self.event_bytes_max
        return BatchLimits(min(EVENTS_MAX, offer.max_events or FLOOR_EVENTS_MAX), body, event)

    async def register(self, session: str, remote_id: str | None, *, restore: bool = False) -> Registration:
        """Make the session known, or find it again under the id it has there; `restore` undoes a deletion there."""
        before = self.changes
        if remote_id is not None:
            answer, judged = await self._ask("GET", f"/sessions/{quote(remote_id, safe='')}")
        else:
            body: dict[str, object] = {"id": session, "agent_task_id": session}
            if restore:
                body["restore"] = True
            if self.owner_and_repo is not None:
                body["owner_id"], body["repo_id"] = (
                    int(part) if part.isdigit() else part for part in self.owner_and_repo
                )
            answer, judged = await self._ask("POST", "/sessions", msgspec.json.encode(body))
        if not isinstance(judged, Accepted):
            return judged
        known = read_session(answer.body)
        if known is None:
            if remote_id is not None:
                return Registered(remote_id, None)
            return Later(NO_SESSION_ID, 60.0, alarm=True)
        self.capabilities = known.capabilities or Capabilities()
        if known.ack is not None:
            self._note_epoch(known.ack.epoch, known.ack.changes, before)
        return Registered(remote_id or known.id, known.ack if self.capabilities.ack else None)

    async def send(
        self, remote_id: str, ids: Sequence[str], lines: Sequence[bytes], rewound: Sequence[str] = ()
    ) -> Sent:
        """Send one batch in file order; `rewound` are ids that are gone from the file."""
        body = _body(lines, rewound)
        headers: dict[str, str] = {}
        offer = self.capabilities
        if offer.ack and ids:
            key = f"{remote_id}:{ids[0]}:{ids[-1]}:{len(ids)}"
            headers["Idempotency-Key"] = key if key.isascii() else hashlib.sha256(key.encode()).hexdigest()
        encoding = self._encoding(len(body))
        path = f"/sessions/{quote(remote_id, safe='')}/events"
        before = self.changes
        answer, judged = await self._ask("POST", path, body, headers, encoding)
        if isinstance(judged, LessCompression):
            if encoding is None:
                return Sent(Later("answered 415 to an uncompressed body", 60.0, alarm=True))
            self._encodings_refused.add(encoding)
        if not isinstance(judged, Accepted) or not offer.ack:
            return Sent(judged)
        try:
            ack = msgspec.json.decode(answer.body, type=_EventsAnswer).ack
        except msgspec.MsgspecError:
            return Sent(Accepted(), trusted=False)
        self._note_epoch(ack.epoch, ack.changes, before)
        return acknowledged(ack, ids)

    async def items(self, remote_id: str) -> dict[str, bytes] | Verdict:
        """Return the ids that the receiver holds, not hidden, in its order, with the SHA-256 of each."""
        path = f"/sessions/{quote(remote_id, safe='')}?ids=1"
        answer, judged = await self._ask("GET", path, answer_bytes_max=ITEMS_BYTES_MAX)
        if not isinstance(judged, Accepted):
            return judged
        try:
            found = msgspec.json.decode(answer.body, type=_ItemsAnswer)
            items = Items((identity, bytes.fromhex(digest)) for identity, digest in found.items)
        except (msgspec.MsgspecError, ValueError):
            return Later("the answer to GET sessions?ids=1 cannot be read", 60.0, alarm=True)
        items.others = frozenset(found.others)
        return items

    async def report(self, path: str, method: str, body: Mapping[str, object]) -> bool:
        """Send a report to a receiver that takes reports; return False if sending it again may help."""
        if not self.capabilities.reports:
            return True
        before = self.changes
        answer, judged = await self._ask(method, path, msgspec.json.encode(body))
        if isinstance(judged, Accepted):
            with contextlib.suppress(msgspec.MsgspecError):
                told = msgspec.json.decode(answer.body or b"{}", type=_ReportAnswer)
                self._note_epoch(told.epoch, told.changes, before)
                self.copies = self.copies if told.copies is None else told.copies
                if told.settings is not None:
                    self.settings_salt, self.wants_settings = told.settings.salt, told.settings.wanted
        return 0 < answer.status < 500 and answer.status not in WORTH_REPEATING

    async def live(self, remote_id: str, lines: Sequence[bytes]) -> None:
        """Send ephemeral events to a receiver that has a live view; an error is ignored."""
        if self.capabilities.live and lines:
            body = b'{"events":[' + b",".join(lines) + b"]}"
            await self._ask("POST", f"/sessions/{quote(remote_id, safe='')}/live", body)

    async def close(self) -> None:
        """Close the connections."""
        await self.transport.close()

    def _note_epoch(self, epoch: str, changes: int, before: int) -> None:
        """Note how far the receiver's store is. `before` is what was known of it when the request was sent."""
        if not epoch:
            return
        if epoch != self.epoch:
            self.epoch, self.changes = epoch, changes
        elif changes < before:
            self.went_back, self.changes = True, changes
        else:
            self.changes = max(self.changes, changes)

    def _encoding(self, size: int) -> str | None:
        if not self.compression or size < _COMPRESS_FROM_BYTES:
            return None
        usable = set(self.capabilities.encodings) - self._encodings_refused
        return next((encoding for encoding in _ENCODINGS if encoding in usable), None)

    async def _ask(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        extra: Mapping[str, str] | None = None,
        encoding: str | None = None,
        answer_bytes_max: int = ANSWER_BYTES_MAX,
    ) -> tuple[HttpAnswer, Verdict]:
        """Send a request; return the answer, with status 0 if there is none, and what it means."""
        headers = {"User-Agent": f"session-exporter/{VERSION}", "Session-Exporter": VERSION, **(extra or {})}
        if self.installation and self.capabilities.installations:
            headers[INSTALLATION_HEADER] = self.installation
        if body:
            headers["Content-Type"] = "application/json"
        if encoding is not None:
            large = len(body) > 65_536
            body = await asyncio.to_thread(_compress, body, encoding) if large else _compress(body, encoding)
            headers["Content-Encoding"] = encoding
        token = self.token()
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        try:
            answer = await self.transport.request(method, path, headers, body, answer_bytes_max=answer_bytes_max)
        except NoAnswerError as error:
            return HttpAnswer(0, {}, b""), Later(str(error))
        judged = judge(answer, deletes=self.capabilities.deletes)
        if isinstance(judged, Unauthorized):
            if token != self.token():
                return answer, Later("the token has changed meanwhile", 0.0)
            self.token_refused = token
        self.store = answer.headers.get(STORE_HEADER, self.store)
        return answer, judged


def judge(answer: HttpAnswer, *, deletes: bool = False) -> Verdict:
    """Return what an answer means for the batch; `deletes` is a capability of the receiver."""
    status, headers = answer.status, answer.headers
    fault = acceptance_fault(status, headers.get("content-type", ""), answer.body, whole=answer.whole)
    kind = _error_kind(answer.body) if status in (403, 409, 410) else ""
    deletes = deletes or kind in _DELETED
    return verdict(status, headers.get("retry-after"), datetime.now(UTC), fault=fault, deletes=deletes, kind=kind)


def _error_kind(body: bytes) -> str:
    try:
        return msgspec.json.decode(body, type=_ErrorAnswer).error.kind
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return ""


def _body(lines: Sequence[bytes], rewound: Sequence[str]) -> bytes:
    """Join a batch and copy its bytes only once: the frame is added to the first and the last line."""
    end = b'],"rewound":' + msgspec.json.encode(list(rewound)) + b"}" if rewound else b"]}"
    parts = list(lines) or [b""]
    parts[0] = b'{"events":[' + parts[0]
    parts[-1] += end
    return b",".join(parts)


def acknowledged(ack: Ack, ids: Sequence[str]) -> Sent:
    """Return what an acknowledgement of these events means."""
    counted = ack.accepted + ack.duplicates + len(ack.rejected)
    return Sent(Accepted(), tuple(ack.rejected), trusted=counted == len(ids), count=ack.count)


def _compress(body: bytes, encoding: str) -> bytes:
    if encoding == "zstd":
        import zstandard

        return zstandard.ZstdCompressor(level=1).compress(body)
    import gzip

    return gzip.compress(body, compresslevel=1)
