"""The observer of one host, without a connection: frames in, frames and events out.

On a new connection the observer sends `reconnect` if the host knew it before, else `initialize`. In both cases it
requests the state of every conversation again and compares it with the checkpoints, because a restarted host answers
an old `lastSeenServerSeq` with an empty replay. Actions that arrive before the new state are not applied. Nothing here
waits: each request carries the callbacks for its response.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import msgspec

from exporter.core.ahp import requests
from exporter.core.ahp.dialect import Dialect, dialect_of
from exporter.core.ahp.messages import (
    UNSUPPORTED_VERSION,
    ErrorResponse,
    HostNotification,
    HostRequest,
    Response,
    explain,
    parse_frame,
)
from exporter.core.ahp.subscriptions import PendingRequest, Subscriptions
from exporter.core.ahp.values import Json, mapping, number, objects, strings, text

IN_FLIGHT_MAX: Final = 8
ANSWER_SECONDS: Final = 30.0
INVALID_FRAMES_MAX: Final = 100
PING_SECONDS: Final = 60.0
AGAIN_SECONDS: Final = 5.0
TELEMETRY: Final = "logs"
TELEMETRY_LEVEL: Final = "info"


@dataclass(slots=True)
class HostObserver:
    """The protocol state of one host.

    The caller sends `outgoing`, stores the events that `subscriptions` have, and reconnects after a `failure`.

    `is_hopeless` says that a new connection would fail in the same way. The host's own telemetry is requested only if
    `on_telemetry` is set.
    """

    client: str
    subscriptions: Subscriptions
    on_telemetry: Callable[[str, bytes], None] | None = None
    outgoing: list[str] = field(default_factory=list)
    dialect: Dialect | None = None
    version: str = ""
    failure: str = ""
    is_hopeless: bool = False
    is_ready: bool = False
    notice: str = ""
    invalid_frames: int = 0
    restarts: int = 0
    _last_seq: int = 0
    _previous_seq: int | None = None
    _number: int = 0
    _in_flight: dict[int, tuple[PendingRequest, float]] = field(default_factory=dict)
    _received_at: float = 0.0
    _list_at: float | None = None
    _telemetry: str = ""

    @property
    def has_pending_requests(self) -> bool:
        """Tell whether responses are pending, so more history may follow."""
        return bool(self._in_flight or self.subscriptions.pending or self.outgoing)

    def connected(self, now: float) -> None:
        """Start the protocol on a new connection."""
        self.failure, self.is_ready, self.is_hopeless = "", False, False
        self.outgoing.clear()
        self._in_flight.clear()
        self._received_at = now
        self._previous_seq = self._last_seq
        self.subscriptions.disconnected()
        if self.dialect is not None and self._last_seq > 0:
            message = requests.reconnect(self.dialect, self.client, self._last_seq, self.subscriptions.addresses())
            self.subscriptions.request(message, self._reconnected, lambda _, at: self._initialize())
        else:
            self._initialize()
        self._send(now)

    def receive(self, frame: str | bytes, now: float) -> None:
        """Process a frame."""
        self._received_at = now
        message = parse_frame(frame)
        if isinstance(message, HostNotification):
            self._on_notification(message, now)
        elif isinstance(message, Response | ErrorResponse):
            request, _ = self._in_flight.pop(message.id, (None, 0.0))
            if request is None:
                self._count_invalid("an answer to nothing that was asked")
            elif isinstance(message, Response):
                request.on_result(message.result, now)
            else:
                request.on_error(message, now)
        elif isinstance(message, HostRequest):
            self._write(requests.refuse(message.id, message.method))
        else:
            self._count_invalid(message.reason)
        self._send(now)

    def tick(self, now: float) -> None:
        """Time out requests, and unsubscribe from idle sessions."""
        late = [id for id, (_, since) in self._in_flight.items() if now - since > ANSWER_SECONDS]
        for id in late:
            request, _ = self._in_flight.pop(id)
            request.on_error(ErrorResponse(id, 0), now)
        if self.is_ready and self.dialect is not None:
            if self._list_at is not None and now >= self._list_at:
                self._list(self.dialect)
            if now - self._received_at > PING_SECONDS and not self._in_flight:
                self.subscriptions.request(requests.ping(self.dialect))
            self.subscriptions.tick(now)
        self._send(now)

    def _initialize(self) -> None:
        self.subscriptions.request(requests.initialize(self.client), self._initialized, self._refused)

    def _initialized(self, result: Json, now: float) -> None:
        version = result.get("protocolVersion")
        self.dialect = dialect_of(version)
        self.version = str(version)[:32] if isinstance(version, str | int) else ""
        if self.dialect is None:
            self.failure = "the host speaks a version that this exporter cannot read: update the exporter"
            self.is_hopeless = True
            return
        channel = text(mapping(result, "telemetry"), TELEMETRY).replace("{level}", TELEMETRY_LEVEL)
        self._telemetry = channel if channel.startswith("ahp-otlp:") else ""
        self._check_restart(number(result, "serverSeq") or 0)
        self._subscribe_all(self.dialect)

    def _refused(self, failure: ErrorResponse, now: float) -> None:
        self.failure = explain(failure.code, failure.versions)
        self.is_hopeless = failure.code == UNSUPPORTED_VERSION

    def _reconnected(self, result: Json, now: float) -> None:
        for uri in strings(result, "missing"):
            self.subscriptions.mark_missing(uri, now)
        if self.dialect is not None:
            self._subscribe_all(self.dialect)

    def _subscribe_all(self, dialect: Dialect) -> None:
        """Request the list of sessions and the state of every conversation."""
        self.is_ready = True
        self.subscriptions.dialect = dialect
        self.subscriptions.on_snapshot = self._check_restart
        self.subscriptions.request(requests.subscribe(dialect, dialect.root), self._root_known)
        self._list(dialect)
        if self._telemetry and self.on_telemetry is not None:
            self.subscriptions.request(requests.subscribe(dialect, self._telemetry))
        self.subscriptions.resubscribe_all()

    def _list(self, dialect: Dialect) -> None:
        self._list_at = None
        self.subscriptions.request(requests.list_sessions(dialect), self._listed, self._not_listed)

    def _check_restart(self, seq: int) -> None:
        """Detect a restart: the first serverSeq of a connection is lower than the last of the connection before."""
        if self._previous_seq is not None and seq < self._previous_seq:
            self.restarts += 1
            self._last_seq = seq
        self._previous_seq = None
        self._last_seq = max(self._last_seq, seq)

    def _listed(self, result: Json, now: float) -> None:
        self.notice = ""
        for summary in objects(result, "items"):
            self.subscriptions.consider(summary, now)

    def _not_listed(self, failure: ErrorResponse, now: float) -> None:
        self.notice = explain(failure.code, failure.versions)
        self._list_at = now + AGAIN_SECONDS

    def _root_known(self, result: Json, now: float) -> None:
        seq = number(mapping(result, "snapshot"), "fromSeq")
        if seq is not None:
            self._check_restart(seq)

    def _on_notification(self, message: HostNotification, now: float) -> None:
        if self.dialect is None:
            return
        if message.method.startswith("otlp/"):
            if self.on_telemetry is not None:
                self.on_telemetry(message.method, message.raw)
        elif message.method == "action":
            seq = number(message.params, "serverSeq") or 0
            self._last_seq = max(self._last_seq, seq)
            if message.params.get("rejectionReason") is None:
                uri, action = self.dialect.action(message.params)
                self.subscriptions.apply(uri, action, seq, now)
        else:
            method, params = self.dialect.notice(message.method, message.params)
            uri = text(params, "session") or text(params, "resource") or text(params, "channel")
            if method == "root/sessionAdded":
                self.subscriptions.consider(mapping(params, "summary"), now)
            elif method == "root/sessionSummaryChanged":
                self.subscriptions.consider({**mapping(params, "changes"), "resource": uri}, now)
            elif method == "root/sessionRemoved":
                self.subscriptions.mark_removed(uri, now)

    def _send(self, now: float) -> None:
        pending = self.subscriptions.pending
        while pending and len(self._in_flight) < IN_FLIGHT_MAX and not self.failure:
            request = pending.popleft()
            if request.message["method"] in requests.NOTIFICATIONS:
                self._write(request.message)
                continue
            self._number += 1
            self._in_flight[self._number] = (request, now)
            self._write({"id": self._number, **request.message})

    def _write(self, message: Json) -> None:
        self.outgoing.append(msgspec.json.encode({"jsonrpc": "2.0", **message}).decode())

    def _count_invalid(self, reason: str) -> None:
        self.invalid_frames += 1
        self.notice = f"the host sent an invalid message: {reason}"
        if self.invalid_frames % INVALID_FRAMES_MAX == 0:
            self.failure = "the host sends too many invalid messages: is it an agent host?"
