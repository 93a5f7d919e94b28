"""The observer of one host, without a connection: frames in, frames and events out.

After a connection is made the host is asked to reconnect us if it knew us before, else to begin. Whatever it answers,
every conversation is asked for its state again, and that is compared with what was told: a host that was restarted
answers a marker of its former life with nothing at all, which proves nothing. Actions between losing a connection and
the new state are not applied. Nothing here waits: a request carries what is to be done with its answer.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from exporter.core.ahp import errors, requests
from exporter.core.ahp.dialect import Dialect, dialect_of
from exporter.core.ahp.fetching import Ask, ignore
from exporter.core.ahp.messages import Asked, ErrorResponse, Response, Rubbish, Told, hear, uri_of
from exporter.core.ahp.session import Line
from exporter.core.ahp.subscriptions import Subscriptions
from exporter.core.ahp.values import Json, mapping, number, objects, strings, text

IN_FLIGHT_MAX: Final = 8
WAITING_MAX: Final = 20_000
ANSWER_SECONDS: Final = 30.0
RUBBISH_MAX: Final = 100
PING_SECONDS: Final = 60.0
AGAIN_SECONDS: Final = 5.0
TELEMETRY: Final = "logs"
TELEMETRY_LEVEL: Final = "info"


@dataclass(slots=True)
class HostCounts:
    """What was heard, for the status."""

    actions: int = 0
    rubbish: int = 0
    asked_of_us: int = 0
    restarts: int = 0
    reconnected: int = 0
    forgotten: int = 0


@dataclass(slots=True)
class HostObserver:
    """Everything about one host. The caller sends `outgoing`, stores `take()`, and connects again after `failure`.

    `is_hopeless` says that connecting again would change nothing. What the host tells of itself is asked for only
    where somebody wants it (`on_telemetry`).
    """

    client: str
    rooms: Subscriptions
    on_telemetry: Callable[[str, bytes], None] | None = None
    outgoing: list[str] = field(default_factory=list)
    dialect: Dialect | None = None
    version: str = ""
    failure: str = ""
    is_hopeless: bool = False
    is_ready: bool = False
    notice: str = ""
    counts: HostCounts = field(default_factory=HostCounts)
    _seen: int = 0
    _seen_before: int | None = None
    _number: int = 0
    _waiting: deque[Ask] = field(default_factory=deque)
    _in_flight: dict[int, tuple[Ask, float]] = field(default_factory=dict)
    _heard_at: float = 0.0
    _list_at: float | None = None
    _telemetry: str = ""

    @property
    def is_asking(self) -> bool:
        """Tell whether answers are awaited, so that there may be more to tell of what was there before."""
        return bool(self._in_flight or self._waiting or self.outgoing)

    def connected(self, now: float) -> None:
        """A connection has been made."""
        self.failure, self.is_ready, self.is_hopeless = "", False, False
        self.outgoing.clear()
        self._waiting.clear()
        self._in_flight.clear()
        self._heard_at = now
        self._seen_before = self._seen
        self.rooms.disconnected()
        if self.dialect is not None and self._seen > 0:
            dialect, subscriptions = self.dialect, self.rooms.subscriptions()
            write = lambda id: requests.reconnect(id, dialect, self.client, self._seen, subscriptions)  # noqa: E731
            self._ask(Ask(write, self._reconnected, lambda _, at: self._initialize(at)), now)
        else:
            self._initialize(now)

    def heard(self, frame: str | bytes, now: float) -> None:
        """Take a frame."""
        self._heard_at = now
        message = hear(frame)
        if isinstance(message, Told):
            self._told(message, now)
        elif isinstance(message, Response | ErrorResponse):
            ask, _ = self._in_flight.pop(message.id, (None, 0.0))
            if ask is None:
                self._rubbish("an answer to nothing that was asked")
            elif isinstance(message, Response):
                ask.then(message.result, now)
            else:
                ask.otherwise(message, now)
        elif isinstance(message, Asked):
            self.counts.asked_of_us += 1
            self.outgoing.append(requests.refuse(message.id, message.method))
        else:
            assert isinstance(message, Rubbish)
            self._rubbish(message.reason)
        self._send(now)

    def tick(self, now: float) -> None:
        """Give up on answers that do not come, and let go of sessions that rest."""
        late = [id for id, (_, since) in self._in_flight.items() if now - since > ANSWER_SECONDS]
        for id in late:
            ask, _ = self._in_flight.pop(id)
            ask.otherwise(ErrorResponse(id, 0), now)
        if self.is_ready:
            self.rooms.tick(now)
            if self.dialect is not None and self._list_at is not None and now >= self._list_at:
                self._list(self.dialect)
            if self.dialect is not None and now - self._heard_at > PING_SECONDS and not self._in_flight:
                dialect = self.dialect
                self._ask(Ask(lambda id: requests.ping(id, dialect), ignore, ignore), now)
        self._send(now)

    def take(self, now: float) -> list[tuple[str, list[Line]]]:
        """Return the events so far, by session."""
        return self.rooms.take(now)

    def _initialize(self, now: float) -> None:
        self._ask(Ask(lambda id: requests.initialize(id, self.client), self._initialized, self._refused), now)

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
        self._began(number(given, "serverSeq") or 0, now)

    def _refused(self, failure: ErrorResponse, now: float) -> None:
        self.failure = errors.explain(failure.code, failure.versions)
        self.is_hopeless = failure.code == errors.UNSUPPORTED_VERSION

    def _reconnected(self, result: Any, now: float) -> None:
        given = result if isinstance(result, dict) else {}
        self.counts.reconnected += 1
        for uri in strings(given, "missing"):
            self.rooms.missing(uri, now)
        self._began(None, now)

    def _began(self, seq: int | None, now: float) -> None:
        """The host knows us: ask for the sessions, and for the state of every conversation, to compare."""
        assert self.dialect is not None
        self.is_ready = True
        self.rooms.speak(self.dialect)
        self.rooms.on_snapshot = self._compare
        if seq is not None:
            self._compare(seq)
        dialect = self.dialect
        root = Ask(lambda id: requests.subscribe(id, dialect, dialect.root), self._root_known, ignore)
        self._queue([root])
        self._list(dialect)
        self.rooms.again()
        if self._telemetry and self.on_telemetry is not None:
            uri = self._telemetry
            self._queue([Ask(lambda id: requests.subscribe(id, dialect, uri), ignore, ignore)])

    def _list(self, dialect: Dialect) -> None:
        self._list_at = None
        self._queue([Ask(lambda id: requests.list_sessions(id, dialect), self._listed, self._not_listed)])

    def _compare(self, seq: int) -> None:
        """Compare the first number of a state on a connection with the last one of the connection before."""
        if self._seen_before is not None and seq < self._seen_before:
            self.counts.restarts += 1
            self._seen = seq
        self._seen_before = None
        self._seen = max(self._seen, seq)

    def _listed(self, result: Any, now: float) -> None:
        self.notice = ""
        for summary in objects(result if isinstance(result, dict) else {}, "items"):
            self.rooms.consider(summary, now)

    def _not_listed(self, failure: ErrorResponse, now: float) -> None:
        self.notice = errors.explain(failure.code, failure.versions)
        self._list_at = now + AGAIN_SECONDS

    def _told(self, message: Told, now: float) -> None:
        if self.dialect is None:
            return
        if message.method.startswith("otlp/"):
            if self.on_telemetry is not None:
                self.on_telemetry(message.method, message.raw)
        elif message.method == "action":
            self.counts.actions += 1
            seq = number(message.params, "serverSeq") or 0
            self._seen = max(self._seen, seq)
            if message.params.get("rejectionReason") is None:
                uri, action = self.dialect.action(message.params)
                self.rooms.act(uri, action, seq, now)
        else:
            method, params = self.dialect.notice(message.method, message.params)
            if method == "root/sessionAdded":
                self.rooms.consider(mapping(params, "summary"), now)
            elif method == "root/sessionSummaryChanged":
                changed: Json = {**mapping(params, "changes"), "resource": text(params, "session") or uri_of(params)}
                self.rooms.consider(changed, now)
            elif method == "root/sessionRemoved":
                self.rooms.removed(text(params, "session") or uri_of(params), now)

    def _root_known(self, result: Any, now: float) -> None:
        seq = number(mapping(result if isinstance(result, dict) else {}, "snapshot"), "fromSeq")
        if seq is not None:
            self._compare(seq)

    def _queue(self, asks: list[Ask]) -> None:
        room = WAITING_MAX - len(self._waiting)
        self.counts.forgotten += max(0, len(asks) - room)
        self._waiting.extend(asks[:room])

    def _ask(self, ask: Ask, now: float) -> None:
        self._queue([ask])
        self._send(now)

    def _send(self, now: float) -> None:
        if not (self.rooms.asks or self._waiting):
            return
        self._queue(self.rooms.asks)
        self.rooms.asks.clear()
        while self._waiting and len(self._in_flight) < IN_FLIGHT_MAX and not self.failure:
            ask = self._waiting.popleft()
            if ask.is_notification:
                self.outgoing.append(ask.write(0))
                continue
            self._number += 1
            self._in_flight[self._number] = (ask, now)
            self.outgoing.append(ask.write(self._number))

    def _rubbish(self, reason: str) -> None:
        self.counts.rubbish += 1
        self.notice = f"the host sent what cannot be read: {reason}"
        if self.counts.rubbish % RUBBISH_MAX == 0:
            self.failure = "too much of what the host sends cannot be read: is it an agent host?"
