"""What a lane relies on in every sink. `tests/sinks/test_contract.py` runs it on each, with a real far side.

A sink is made as its kind registers it (`exporter/wiring/sinks`) and speaks to what stands behind it in earnest: a
server's socket, a directory. What a sink has no part in stands in `lacks` with its reason; a test of such a part then
holds the sink to saying so itself, so that nothing is skipped in silence.
"""

import asyncio
import json
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar

import pytest

from exporter.core.delivery.verdict import Accepted, Deleted, Later
from exporter.core.events.digest import total
from exporter.core.notice import Notice
from exporter.pipeline.segment_reader import SegmentReader
from exporter.sinks.sink import Inspection, Registered, Sink
from exporter.sources.files.session_file import OpenFiles
from exporter.wiring.sinks.kind import SinkParts

PARTS = {
    "acknowledges": "says after every batch how many events of the session it holds",
    "holds": "says which ids it holds, with the hash of each",
    "knows duplicates": "holds what it is sent twice once",
    "hides": "hides what is gone from the file",
    "rejects": "names the events that it does not take",
    "remembers deletions": "does not take a session again that was deleted there, unless it is restored",
    "inspects": "can be read from here to its last byte",
    "gathers": "wants events to gather before it is sent any",
    "reports": "is told of sessions",
}


def event(identity: str, text: str = "") -> bytes:
    """Return a redacted event as it is delivered."""
    body = {"type": "tool.x", "data": {"text": text}, "id": identity, "timestamp": "2026-11-18T10:00:00.000Z"}
    return json.dumps({**body, "parentId": None}).encode()


def parts(receiver: Any = None) -> SinkParts:
    """Return what sinks are built with."""
    reader = SegmentReader(OpenFiles(1), lambda line, /: line, line_bytes_max=1 << 20, cache_bytes=0)
    said: list[Notice] = []
    return SinkParts(reader, lambda: "exporter-1", said.append, None, receiver)


class FarSide(ABC):
    """What stands behind a sink: it tells what it holds, and can go away."""

    sink: Sink

    @abstractmethod
    async def held(self, session: str) -> list[str]:
        """Return the ids that it shows of a session, in its order."""

    @abstractmethod
    async def leave(self) -> None:
        """Go away: nothing can be sent there from now on."""

    async def delete(self, session: str) -> None:
        """Delete a session, as a person does there."""
        raise NotImplementedError

    def lines(self, ids: Sequence[str]) -> list[bytes]:
        """Return what the sink is sent for events of these ids."""
        return [event(identity) for identity in ids]

    def bad(self) -> tuple[str, bytes]:
        """Return what the sink cannot take: under which id it says so, and what it is sent."""
        raise NotImplementedError


class SinkContract:
    """The suite. A subclass names the section of its kind, what the sink lacks and why, and makes it."""

    section: ClassVar[str]
    lacks: ClassVar[dict[str, str]]
    odd_names: ClassVar[tuple[str, ...]] = ("..", "a/b ?#é", "x" * 240, "%2E", "s.1_A-b")
    pytestmark = pytest.mark.anyio

    def behind(self, directory: Path) -> AbstractAsyncContextManager[FarSide]:
        """Open a sink with what stands behind it."""
        raise NotImplementedError

    @pytest.fixture
    async def far(self, tmp_path: Path) -> AsyncIterator[FarSide]:
        async with self.behind(tmp_path) as far:
            yield far
            await far.sink.close()

    def has(self, part: str) -> bool:
        return part in PARTS and part not in self.lacks

    async def registered(self, far: FarSide, session: str = "s") -> str:
        answer = await far.sink.register(session, None)
        assert isinstance(answer, Registered)
        return answer.remote_id

    # ---- what the suite asks of itself ----------------------------------------------------------------------

    def test_every_part_is_there_or_has_a_reason_why_not(self) -> None:
        assert self.lacks.keys() <= PARTS.keys()
        assert all(len(reason) > 10 for reason in self.lacks.values())

    async def test_what_it_lacks_is_what_it_says_of_itself(self, far: FarSide) -> None:
        remote = await self.registered(far)

        offers = far.sink.capabilities
        assert offers.ack == self.has("acknowledges")
        assert offers.digest == self.has("holds") == (not far.sink.unproved)
        assert offers.rewound == self.has("hides")
        assert offers.reports == self.has("reports")
        assert (far.sink.gathering is not None) == self.has("gathers")
        assert isinstance(await far.sink.inspect(remote), Inspection) == self.has("inspects")

    # ---- registering ----------------------------------------------------------------------------------------

    async def test_registering_again_finds_the_same_session(self, far: FarSide) -> None:
        remote = await self.registered(far)

        again = await far.sink.register("s", None)
        found = await far.sink.register("s", remote)

        assert isinstance(again, Registered) and isinstance(found, Registered)
        assert again.remote_id == found.remote_id == remote

    async def test_a_registration_says_what_is_held(self, far: FarSide) -> None:
        remote = await self.registered(far)
        ids = ["a", "b", "c"]
        lines = far.lines(ids)
        await far.sink.send(remote, ids, lines)

        answer = await far.sink.register("s", remote)

        assert isinstance(answer, Registered)
        if not self.has("acknowledges"):
            assert answer.ack is None
            return
        assert answer.ack is not None
        proof = total((one, sha256(line).digest()) for one, line in zip(ids, lines, strict=True))
        assert (answer.ack.count, answer.ack.digest, answer.ack.last_event_id) == (3, proof, "c")

    async def test_a_deleted_session_stays_deleted_until_it_is_restored(self, far: FarSide) -> None:
        if not self.has("remembers deletions"):
            return
        remote = await self.registered(far)
        await far.sink.send(remote, ["a"], far.lines(["a"]))
        await far.delete("s")

        assert isinstance(await far.sink.register("s", remote), Deleted)
        assert isinstance((await far.sink.send(remote, ["b"], far.lines(["b"]))).verdict, Deleted)
        assert await far.held("s") == []
        assert isinstance(await far.sink.register("s", None, restore=True), Registered)
        assert (await far.sink.send(remote, ["b"], far.lines(["b"]))).verdict == Accepted()
        assert await far.held("s") == ["b"]

    # ---- sending --------------------------------------------------------------------------------------------

    async def test_what_is_accepted_is_there_in_order(self, far: FarSide) -> None:
        remote = await self.registered(far)

        first = await far.sink.send(remote, ["a", "b"], far.lines(["a", "b"]))
        second = await far.sink.send(remote, ["c"], far.lines(["c"]))

        assert (first.verdict, first.rejected, first.trusted) == (Accepted(), (), True)
        assert (second.verdict, second.rejected, second.trusted) == (Accepted(), (), True)
        assert (first.count, second.count) == ((2, 3) if self.has("acknowledges") else (None, None))
        assert await far.held("s") == ["a", "b", "c"]

    async def test_what_it_holds_is_told_with_the_hash_of_each(self, far: FarSide) -> None:
        remote = await self.registered(far)
        ids = ["a", "b"]
        lines = far.lines(ids)
        await far.sink.send(remote, ids, lines)

        held = await far.sink.items(remote)

        told = {one: sha256(line).digest() for one, line in zip(ids, lines, strict=True)}
        assert held == (told if self.has("holds") else {})
        assert isinstance(held, dict) and list(held) == (ids if self.has("holds") else [])
        if self.has("inspects"):
            assert await far.sink.inspect(remote) == Inspection(told)

    async def test_what_is_sent_twice_does_no_harm(self, far: FarSide) -> None:
        remote = await self.registered(far)
        await far.sink.send(remote, ["a", "b"], far.lines(["a", "b"]))

        again = await far.sink.send(remote, ["a", "b"], far.lines(["a", "b"]))
        more = await far.sink.send(remote, ["b", "c"], far.lines(["b", "c"]))

        assert (again.verdict, again.rejected, again.trusted) == (Accepted(), (), True)
        assert (more.verdict, more.trusted) == (Accepted(), True)
        if self.has("knows duplicates"):
            assert (again.count, more.count) == (2, 3)
            assert await far.held("s") == ["a", "b", "c"]
        else:
            assert set(await far.held("s")) == {"a", "b", "c"}

    async def test_an_empty_batch_changes_nothing(self, far: FarSide) -> None:
        remote = await self.registered(far)
        await far.sink.send(remote, ["a"], far.lines(["a"]))

        if self.has("hides"):
            assert (await far.sink.send(remote, [], [], ["never was there"])).verdict == Accepted()

        assert await far.held("s") == ["a"]

    async def test_what_is_rejected_is_named_and_the_rest_is_there(self, far: FarSide) -> None:
        if not self.has("rejects"):
            return
        remote = await self.registered(far)
        name, line = far.bad()

        sent = await far.sink.send(remote, ["a", name, "b"], [*far.lines(["a"]), line, *far.lines(["b"])])

        assert (sent.verdict, sent.rejected, sent.trusted, sent.count) == (Accepted(), (name,), True, 2)
        assert await far.held("s") == ["a", "b"]

    async def test_what_is_rewound_is_hidden_and_may_come_back(self, far: FarSide) -> None:
        if not self.has("hides"):
            return
        remote = await self.registered(far)
        await far.sink.send(remote, ["a", "b", "c"], far.lines(["a", "b", "c"]))

        hidden = await far.sink.send(remote, [], [], ["b", "c"])
        assert hidden.verdict == Accepted()
        assert await far.held("s") == ["a"]
        assert list(await far.sink.items(remote)) == ["a"]  # type: ignore[arg-type]  # a dict, as the test above says

        another = [event("b", "another"), event("c")]
        back = await far.sink.send(remote, ["b", "c"], another)
        assert (back.verdict, back.count) == (Accepted(), 3)
        assert set(await far.held("s")) == {"a", "b", "c"}
        held = await far.sink.items(remote)
        assert isinstance(held, dict)
        assert [held["b"], held["c"]] == [sha256(line).digest() for line in another]

    # ---- limits ---------------------------------------------------------------------------------------------

    async def test_what_the_limits_allow_is_taken(self, far: FarSide) -> None:
        remote = await self.registered(far)
        limits = far.sink.limits()
        ids = [f"e{number}" for number in range(min(limits.events_max, 2_500))]
        lines = far.lines(ids)
        assert sum(map(len, lines)) + len(lines) < limits.bytes_max
        assert max(map(len, lines)) < limits.event_bytes_max

        sent = await far.sink.send(remote, ids, lines)

        assert (sent.verdict, sent.rejected, sent.trusted) == (Accepted(), (), True)
        assert await far.held("s") == ids

    async def test_a_body_that_was_refused_never_makes_the_next_ones_larger(self, far: FarSide) -> None:
        await self.registered(far)
        before = far.sink.limits().bytes_max

        far.sink.body_refused(before)
        after = far.sink.limits().bytes_max
        far.sink.body_refused(1)

        assert after <= before
        assert 0 < far.sink.limits().bytes_max <= after

    # ---- several at once, and the end -----------------------------------------------------------------------

    async def test_sessions_at_once_do_not_mix(self, far: FarSide) -> None:
        async def deliver(session: str) -> None:
            remote = await self.registered(far, session)
            for number in range(4):
                ids = [f"{session}-{number}"]
                assert (await far.sink.send(remote, ids, far.lines(ids))).verdict == Accepted()

        names = [f"s{number}" for number in range(6)]
        await asyncio.gather(*map(deliver, names))

        for name in names:
            assert await far.held(name) == [f"{name}-{number}" for number in range(4)]

    async def test_odd_names_of_sessions_are_names_like_others(self, far: FarSide) -> None:
        for name in self.odd_names:
            remote = await self.registered(far, name)
            await far.sink.send(remote, [f"in {name}"], far.lines([f"in {name}"]))

        for name in self.odd_names:
            assert await far.held(name) == [f"in {name}"]

    async def test_one_that_is_away_is_tried_later_and_raises_nothing(self, far: FarSide) -> None:
        remote = await self.registered(far)
        await far.leave()

        sent = await asyncio.wait_for(far.sink.send(remote, ["a"], far.lines(["a"])), 20)

        assert isinstance(sent.verdict, Later)
        assert sent.verdict.reason
        answer = await far.sink.register("s", remote)
        assert isinstance(answer, Later) or (isinstance(answer, Registered) and not answer.asked)
        if self.has("holds"):
            assert isinstance(await far.sink.items(remote), Later)
        if self.has("inspects"):
            assert isinstance(await far.sink.inspect(remote), Later)
        assert await far.sink.report("/sessions/s", "PUT", {"title": "x"}) is not self.has("reports")

    async def test_reports_and_ephemeral_events_do_no_harm(self, far: FarSide) -> None:
        remote = await self.registered(far)
        await far.sink.send(remote, ["a"], far.lines(["a"]))

        assert await far.sink.report(f"/sessions/{remote}", "PUT", {"title": "x"}) is True
        await far.sink.live(remote, [event("passing").replace(b'"tool.x"', b'"tool.x","ephemeral":true')])

        assert await far.held("s") == ["a"]

    async def test_closing_twice_does_no_harm(self, far: FarSide) -> None:
        await self.registered(far)

        await far.sink.close()
        await far.sink.close()
