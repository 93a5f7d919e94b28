"""The observer of one host, without a connection: frames in, frames and events out.

On a new connection the observer sends `reconnect` if the host knew it before, else `initialize`. In both cases it
requests the state of every conversation again and compares it with the checkpoints, because a restarted host answers
an old `lastSeenServerSeq` with an empty replay. Actions that arrive before the new state are not applied. Nothing here
waits: each request carries the callbacks for its response.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from exporter.core.ahp import errors, requests
from exporter.core.ahp.dialect import Dialect, dialect_of
from exporter.core.ahp.fetching import PendingRequest, ignore
from exporter.core.ahp.messages import (
    ErrorResponse,
    HostNotification,
    HostRequest,
    InvalidFrame,
    Response,
    parse_frame,
    uri_of,
)
from exporter.core.ahp.session import Line
from exporter.core.ahp.subscriptions import Subscriptions
from exporter.core.ahp.values import Json, mapping, number, objects, strings, text

IN_FLIGHT_MAX: Final = 8
WAITING_MAX: Final = 20_000
ANSWER_SECONDS: Final = 30.0
INVALID_FRAMES_MAX: Final = 100
PING_SECONDS: Final = 60.0
AGAIN_SECONDS: Final = 5.0
TELEMETRY: Final = "logs"
TELEMETRY_LEVEL: Final = "info"


@dataclass(slots=True)
class HostObserver:
    """The protocol state of one host. The caller sends `outgoing`, stores `take()`, and reconnects after `failure`.

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
    _waiting: deque[PendingRequest] = field(default_factory=deque)
    _in_flight: dict[int, tuple[PendingRequest, float]] = field(default_factory=dict)
    _received_at: float = 0.0
    _list_at: float | None = None
    _telemetry: str = ""

    @property
    def has_pending_requests(self) -> bool:
        """Tell whether responses are pending, so more history may follow."""
        return bool(self._in_flight or self._waiting or self.outgoing)

    def connected(self, now: float) -> None:
        """Start the protocol on a new connection."""
        self.failure, self.is_ready, self.is_hopeless = "", False, False
        self.outgoing.clear()
        self._waiting.clear()
        self._in_flight.clear()
        self._received_at = now
        self._previous_seq = self._last_seq
        self.subscriptions.disconnected()
        if self.dialect is not None and self._last_seq > 0:
            dialect, subscriptions = self.dialect, self.subscriptions.addresses()
            write = lambda id: requests.reconnect(id, dialect, self.client, self._last_seq, subscriptions)  # noqa: E731
            self._request(PendingRequest(write, self._reconnected, lambda _, at: self._initialize(at)), now)
        else:
            self._initialize(now)

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
            self.outgoing.append(requests.refuse(message.id, message.method))
        else:
            assert isinstance(message, InvalidFrame)
            self._count_invalid(message.reason)
        self._send(now)

    def tick(self, now: float) -> None:
        """Time out requests, and unsubscribe from idle sessions."""
        late = [id for id, (_, since) in self._in_flight.items() if now - since > ANSWER_SECONDS]
        for id in late:
            request, _ = self._in_flight.pop(id)
            request.on_error(ErrorResponse(id, 0), now)
        if self.is_ready:
            self.subscriptions.tick(now)
            if self.dialect is not None and self._list_at is not None and now >= self._list_at:
                self._list(self.dialect)
            if self.dialect is not None and now - self._received_at > PING_SECONDS and not self._in_flight:
                dialect = self.dialect
                self._request(PendingRequest(lambda id: requests.ping(id, dialect), ignore, ignore), now)
        self._send(now)

    def take(self, now: float) -> list[tuple[str, list[Line]]]:
        """Return the events so far, by session."""
        return self.subscriptions.take(now)

    def _initialize(self, now: float) -> None:
        self._request(
            PendingRequest(lambda id: requests.initialize(id, self.client), self._initialized, self._refused), now
        )

    def _initialized(self, result: Any, now: float) -> None:
        given = result if isinstance(result, dict) else {}
        version = given.get("protocolVersion")
        self.dialect = dialect_of(version)
        self.version = str(version)[:32] if isinstance(version, str | int) else ""
        if self.dialect is None:
            self.failure = "the host speaks a version that this exporter cannot read: update the exporter"
            self.is_hopeless = True
            return
        channel = text(mapping(given, "telemetry"), TELEMETRY).replace("{level}", TELEMETRY_LEVEL)
        self._telemetry = channel if channel.startswith("ahp-otlp:") else ""
        self._subscribe_all(number(given, "serverSeq") or 0, now)

    def _refused(self, failure: ErrorResponse, now: float) -> None:
        self.failure = errors.explain(failure.code, failure.versions)
        self.is_hopeless = failure.code == errors.UNSUPPORTED_VERSION

    def _reconnected(self, result: Any, now: float) -> None:
        given = result if isinstance(result, dict) else {}
        for uri in strings(given, "missing"):
            self.subscriptions.mark_missing(uri, now)
        self._subscribe_all(None, now)

    def _subscribe_all(self, seq: int | None, now: float) -> None:
        """Request the list of sessions and the state of every conversation."""
        assert self.dialect is not None
        self.is_ready = True
        self.subscriptions.set_dialect(self.dialect)
        self.subscriptions.on_snapshot = self._check_restart
        if seq is not None:
            self._check_restart(seq)
        dialect = self.dialect
        root = PendingRequest(lambda id: requests.subscribe(id, dialect, dialect.root), self._root_known, ignore)
        self._queue([root])
        self._list(dialect)
        self.subscriptions.resubscribe_all()
        if self._telemetry and self.on_telemetry is not None:
            uri = self._telemetry
            self._queue([PendingRequest(lambda id: requests.subscribe(id, dialect, uri), ignore, ignore)])

    def _list(self, dialect: Dialect) -> None:
        self._list_at = None
        self._queue([PendingRequest(lambda id: requests.list_sessions(id, dialect), self._listed, self._not_listed)])

    def _check_restart(self, seq: int) -> None:
        """Detect a restart: the first serverSeq of a connection is lower than the last of the connection before."""
        if self._previous_seq is not None and seq < self._previous_seq:
            self.restarts += 1
            self._last_seq = seq
        self._previous_seq = None
        self._last_seq = max(self._last_seq, seq)

    def _listed(self, result: Any, now: float) -> None:
        self.notice = ""
        for summary in objects(result if isinstance(result, dict) else {}, "items"):
            self.subscriptions.consider(summary, now)

    def _not_listed(self, failure: ErrorResponse, now: float) -> None:
        self.notice = errors.explain(failure.code, failure.versions)
        self._list_at = now + AGAIN_SECONDS

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
            if method == "root/sessionAdded":
                self.subscriptions.consider(mapping(params, "summary"), now)
            elif method == "root/sessionSummaryChanged":
                changed: Json = {**mapping(params, "changes"), "resource": text(params, "session") or uri_of(params)}
                self.subscriptions.consider(changed, now)
            elif method == "root/sessionRemoved":
                self.subscriptions.mark_removed(text(params, "session") or uri_of(params), now)

    def _root_known(self, result: Any, now: float) -> None:
        seq = number(mapping(result if isinstance(result, dict) else {}, "snapshot"), "fromSeq")
        if seq is not None:
            self._check_restart(seq)

    def _queue(self, added: list[PendingRequest]) -> None:
        self._waiting.extend(added[: WAITING_MAX - len(self._waiting)])

    def _request(self, request: PendingRequest, now: float) -> None:
        self._queue([request])
        self._send(now)

    def _send(self, now: float) -> None:
        if not (self.subscriptions.pending or self._waiting):
            return
        self._queue(self.subscriptions.pending)
        self.subscriptions.pending.clear()
        while self._waiting and len(self._in_flight) < IN_FLIGHT_MAX and not self.failure:
            request = self._waiting.popleft()
            if request.is_notification:
                self.outgoing.append(request.write(0))
                continue
            self._number += 1
            self._in_flight[self._number] = (request, now)
            self.outgoing.append(request.write(self._number))

    def _count_invalid(self, reason: str) -> None:
        self.invalid_frames += 1
        self.notice = f"the host sent an invalid message: {reason}"
        if self.invalid_frames % INVALID_FRAMES_MAX == 0:
            self.failure = "the host sends too many invalid messages: is it an agent host?"
