"""A network that loses, delays, repeats and lies, and what must hold of every request that is sent over it."""

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Final

import msgspec

from exporter.core.names import STORE_HEADER
from exporter.sinks.transport import ANSWER_BYTES_MAX, HttpAnswer, NoAnswerError
from tests.simulation.receiver import UPLOAD, Receiver, Upload
from tests.simulation.redactor import leaks

_HTML: Final = {"content-type": "text/html"}
LIES: Final[dict[str, HttpAnswer]] = {
    "portal": HttpAnswer(200, _HTML, b"<html>sign in</html>"),
    "text": HttpAnswer(200, {}, b"ok"),
    "some of it": HttpAnswer(206, {}, b""),
    "500": HttpAnswer(500, {}, b""),
    "503": HttpAnswer(503, {"retry-after": "0"}, b""),
    "429": HttpAnswer(429, {"retry-after": "3"}, b""),
    "302": HttpAnswer(302, {"location": "/"}, b""),
    "400": HttpAnswer(400, {}, b""),
    "404": HttpAnswer(404, {}, b""),
    "409": HttpAnswer(409, {}, b""),
    "410": HttpAnswer(410, {}, b""),
    "413": HttpAnswer(413, {}, b""),
    "415": HttpAnswer(415, {}, b""),
    "empty": HttpAnswer(200, {}, b""),
}
"""Answers of something in between: the receiver hears nothing."""
FAULTS: Final = ("lost", "answer lost", "late", "twice", "slow", "part", "miscounted", "off by one", "no ack", *LIES)
_LOSES_TRACK: Final = (404, 409, 410, 413)
NO_ANSWER_SECONDS: Final = 1.0
_SPARE_SECONDS: Final = 0.01


@dataclass(slots=True)
class Wire:
    """The way to one receiver, and what is known of it. `violated` is told what must not be.

    `firm` are events whose acceptance the exporter knows, and has had the time to remember: they are never sent again.
    `excused` are sessions of which the receiver may lack something that it had, without anybody's knowledge,
    `rolled` those of them of which it does only because its store was restored.
    """

    receiver: Receiver
    violated: Callable[[str], None]
    chance: Random
    faults: deque[str] = field(default_factory=deque)
    firm: dict[str, set[str]] = field(default_factory=dict)
    known: dict[str, set[str]] = field(default_factory=dict)
    excused: set[str] = field(default_factory=set)
    rolled: set[str] = field(default_factory=set)
    unmarked: set[str] = field(default_factory=set)
    """The sessions of which the exporter may not know what is there, until the receiver says how much it is."""
    forgotten: set[str] = field(default_factory=set)
    refused: set[str] = field(default_factory=set)
    """The events of every request that was refused."""
    refused_alone: set[str] = field(default_factory=set)
    used: Counter[str] = field(default_factory=Counter)
    is_shared: bool = False  # two exporters send the same
    quiet_from: float = 0.0
    """When nothing is on its way any more that nobody waits for."""
    requests: int = 0

    def arrive(self, method: str, path: str, body: bytes, token: str, *, part: bool = False) -> HttpAnswer:
        self.requests += 1
        return self.receiver.answer(method, path, body, token, part=part)

    def later(self, seconds: float, session: str, method: str, path: str, body: bytes, token: str) -> None:
        """Let a request arrive when nobody waits for its answer any more."""
        loop = asyncio.get_running_loop()
        self.quiet_from = max(self.quiet_from, loop.time() + seconds + _SPARE_SECONDS)
        self.excused.add(session)
        self.rolled.discard(session)
        loop.call_later(seconds, self.arrive, method, path, body, token)

    def remembered(self, session: str, ids: set[str]) -> None:
        """Note that the exporter has remembered, or ought to have, that these were accepted, if they were."""
        if not self.is_shared and (known := self.known.get(session, set()) & ids):
            self.known[session] -= known
            self.firm.setdefault(session, set()).update(known)

    def rests(self, session: str) -> None:
        """Note that the exporter has nothing to do for a session."""
        self.remembered(session, self.known.get(session, set()))
        self.forgotten.discard(session)

    def forget(self, session: str) -> None:
        """Expect that a session is sent again, until the exporter has nothing to do for it."""
        self.forgotten.add(session)
        self.firm.pop(session, None)
        self.known.pop(session, None)


class Line:
    """The transport of one exporter over a wire."""

    def __init__(self, wire: Wire, connections: int) -> None:
        self._wire, self._connections = wire, connections
        self.busy: Counter[str] = Counter()

    async def request(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        body: bytes,
        *,
        answer_bytes_max: int = ANSWER_BYTES_MAX,
    ) -> HttpAnswer:
        wire, is_events = self._wire, path.endswith("/events")
        session = path.split("/")[2].partition("?")[0].partition("~")[0] if path != "/sessions" else ""
        session = session or msgspec.json.decode(body)["id"]
        upload = UPLOAD.decode(body) if is_events else Upload()
        ids = upload.ids()
        self._begins(session, ids)
        if leaks(body):
            wire.violated(f"something leaves that is not redacted, of {ids}")
        for had in (wire.firm, wire.known):
            had.get(session, set()).difference_update(upload.rewound)
        try:
            answer = await self._exchange(session, (method, path, body, headers["Authorization"]))
        finally:
            self.busy[session] -= 1
        if answer.status in (400, 413):
            wire.refused.update(ids)
            wire.refused_alone.update(ids if len(ids) == 1 else ())
        if not wire.receiver.is_full and answer.status in _LOSES_TRACK:
            wire.forget(session)
        elif answer.status == 200 and "content-type" in answer.headers and session not in wire.forgotten:
            wire.known.setdefault(session, set()).update(ids)
        return answer

    def _begins(self, session: str, ids: list[str]) -> None:
        wire = self._wire
        self.busy[session] += 1
        if self.busy[session] > 1:
            wire.violated(f"two requests about {session} at once")
        if self.busy.total() > self._connections:
            wire.violated("more requests at once than connections")
        if len(set(ids)) != len(ids):
            wire.violated(f"sent twice in one request: {ids}")
        visible = wire.receiver.held(session).visible()
        if again := wire.firm.get(session, set()).intersection(ids, visible):
            wire.violated(f"sent again though the receiver accepted it: {sorted(again)}")

    async def _exchange(self, session: str, asked: tuple[str, str, bytes, str]) -> HttpAnswer:
        wire = self._wire
        fault = wire.faults.popleft() if wire.faults else ""
        wire.used[fault] += 1
        if fault == "404":
            self._wire.rolled.discard(session)
            self._wire.excused.add(session)  # nothing says any more that it was ever there, until something is sent
        if fault in ("late", "twice"):
            wire.later(wire.chance.uniform(0.1, 20.0), session, *asked)
        await asyncio.sleep(wire.chance.uniform(0.001, 0.03))
        if fault in LIES:
            return LIES[fault]
        if fault == "lost":
            raise NoAnswerError("lost")
        if fault == "late":
            await asyncio.sleep(NO_ANSWER_SECONDS)
            raise NoAnswerError("timed out")
        answer = wire.arrive(*asked, part=fault == "part")
        await asyncio.sleep(5.0 if fault == "slow" else wire.chance.uniform(0.001, 0.03))
        if fault in ("", "slow", "twice") and answer.status == 200:
            wire.unmarked.discard(session)
        if fault == "answer lost":
            raise NoAnswerError("reset")
        return _altered(answer, fault) if wire.receiver.is_full and answer.status == 200 else answer

    async def close(self) -> None:
        pass


def _altered(answer: HttpAnswer, fault: str) -> HttpAnswer:
    """Return an answer of a receiver that acknowledges what is not so."""
    headers = {STORE_HEADER: answer.headers[STORE_HEADER]}
    body = msgspec.json.decode(answer.body)
    if fault == "no ack":
        return HttpAnswer(200, headers, b"{}")
    if fault == "miscounted" and "accepted" in body.get("ack", {}):
        body["ack"]["accepted"] += 1
        return HttpAnswer(200, headers, msgspec.json.encode(body))
    if fault == "off by one" and "ack" in body:
        body["ack"]["count"] += 1
        return HttpAnswer(200, answer.headers, msgspec.json.encode(body))
    return answer
