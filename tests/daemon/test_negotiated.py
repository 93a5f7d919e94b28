"""What a receiver offers above the floor, used when it is offered and only then."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from exporter.core.events.redaction import Masked
from exporter.daemon.status_report import Reports
from exporter.errors import Exit
from exporter.pipeline.redactors import Redactors
from tests.daemon.exchange import Reply
from tests.daemon.peer import Peer
from tests.daemon.receivers import Full
from tests.daemon.sessions import event
from tests.daemon.station import PASS_THROUGH, Exporter, Station, until

pytestmark = pytest.mark.anyio

MIB = 1 << 20


@contextmanager
def _offering(path: Path, **offer: Any) -> Iterator[Peer]:
    """A receiver that offers something else than usual."""

    def change(answer: dict[str, Any]) -> None:
        answer["capabilities"].update(offer)

    with Peer(Full(path / "offering.db", change)) as peer:
        yield peer


@pytest.mark.parametrize(("offered", "used"), [(["zstd", "gzip"], "zstd"), (["gzip"], "gzip"), (["br"], None)])
async def test_the_best_encoding_that_is_offered_is_used(
    station: Station, tmp_path: Path, offered: list[str], used: str | None
) -> None:
    with _offering(tmp_path, encodings=offered) as peer:
        session = station.session()
        session.add(200, size=1000)
        exporter = station.exporter(peer, compress=True)

        await exporter.idle()

        assert {request.headers.get("content-encoding") for request in peer.event_requests()} == {used}
        assert peer.ids() == session.durable_ids()
        assert [body for _, body in peer.behind.held("s")] == session.lines()


async def test_a_small_body_is_not_compressed(station: Station, full: Peer) -> None:
    session = station.session()
    session.add(2)
    exporter = station.exporter(full, compress=True)

    await exporter.idle()

    assert [request.headers.get("content-encoding") for request in full.event_requests()] == [None]


async def test_nothing_is_compressed_on_loopback(station: Station, full: Peer) -> None:
    session = station.session()
    session.add(200, size=1000)
    exporter = station.exporter(full)

    await exporter.idle()

    assert all("content-encoding" not in request.headers for request in full.requests)


async def test_a_batch_carries_a_key_that_names_it(station: Station, full: Peer) -> None:
    session = station.session()
    session.add(7)
    exporter = station.exporter(full)

    await exporter.idle()

    assert [request.headers["idempotency-key"] for request in full.event_requests()] == ["s:e0:e6:7"]


async def test_ids_that_fit_no_header_are_named_by_their_hash(station: Station, full: Peer) -> None:
    session = station.session()
    session.append(event("é\n1"))
    exporter = station.exporter(full)

    await exporter.idle()

    [request] = full.event_requests()
    assert len(bytes.fromhex(request.headers["idempotency-key"])) == 32
    assert full.ids() == ["é\n1"]


async def test_fewer_events_than_the_floor_are_sent_when_that_is_asked_for(station: Station, tmp_path: Path) -> None:
    with _offering(tmp_path, max_events=40) as peer:
        session = station.session()
        session.add(130)
        exporter = station.exporter(peer)

        await exporter.idle()

        assert max(len(request.ids()) for request in peer.event_requests()) <= 40
        assert peer.ids() == session.durable_ids()


async def test_a_body_is_as_large_as_it_may_be_and_no_larger(station: Station, tmp_path: Path) -> None:
    with _offering(tmp_path, max_body=100_000) as peer:
        session = station.session()
        session.add(600, size=1000)
        exporter = station.exporter(peer)

        await exporter.idle()

        sizes = [len(request.body) for request in peer.event_requests()]
        assert max(sizes) <= 100_000
        assert len(sizes) <= 10
        assert peer.ids() == session.durable_ids()


async def test_a_larger_event_than_at_the_floor_is_taken_where_that_is_offered(station: Station, full: Peer) -> None:
    session = station.session()
    session.append(event("giant", size=9 * MIB))
    exporter = station.exporter(full)

    ended = await exporter.idle()

    assert ended == Exit.DONE
    assert full.ids() == ["giant"]


async def test_a_rewind_is_told_and_hides_what_is_gone(station: Station, full: Peer) -> None:
    session = station.session()
    session.add(20)
    exporter = station.exporter(full)
    await exporter.idle()
    session.replace(*session.lines()[:12])
    session.append(*session.make(3, prefix="new"))

    await until(lambda: full.ids() == session.durable_ids())
    await exporter.idle()

    told = [request.json()["rewound"] for request in full.event_requests() if "rewound" in request.json()]
    assert told == [[f"e{number}" for number in range(12, 20)]]
    assert sum(len(request.ids()) for request in full.event_requests()) == 23
    assert await exporter.differences() == []


async def test_a_rewind_of_more_than_one_request_takes_is_told_in_several(
    station: Station, full: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("exporter.pipeline.sink_session._REWOUND_MAX", 3)
    session = station.session()
    session.add(20)
    exporter = station.exporter(full)
    await exporter.idle()
    session.replace(*session.lines()[:12])
    session.append(*session.make(3, prefix="new"))

    await until(lambda: full.ids() == session.durable_ids())
    await exporter.idle()

    told = [request.json()["rewound"] for request in full.event_requests() if "rewound" in request.json()]
    assert [len(ids) for ids in told] == [3, 3, 2]
    assert await exporter.differences() == []


async def test_a_rewind_while_the_exporter_was_off_is_told(station: Station, full: Peer) -> None:
    session = station.session()
    session.add(20)
    first = station.exporter(full)
    await first.idle()
    await first.stop()
    session.replace(*session.lines()[:5])
    session.append(*session.make(30, prefix="new"))

    exporter = station.exporter(full)
    await exporter.idle()

    assert full.ids() == session.durable_ids()
    assert await exporter.differences() == []


async def test_an_event_that_comes_back_after_a_rewind_is_shown_again(station: Station, full: Peer) -> None:
    session = station.session()
    session.add(10)
    lines = session.lines()
    exporter = station.exporter(full)
    await exporter.idle()
    session.replace(*lines[:5])
    await until(lambda: len(full.ids()) == 5)

    session.append(*lines[5:])

    await until(lambda: full.ids() == session.durable_ids())
    await exporter.idle()
    assert await exporter.differences() == []


async def test_an_empty_first_answer_after_a_restart_takes_no_capability_away(station: Station, full: Peer) -> None:
    session = station.session()
    session.add(2)
    first = station.exporter(full)
    await first.idle()
    await first.stop()
    session.add(1)
    full.script = lambda one: Reply(200, body=b"") if one.method == "GET" and "ids" not in one.path else None

    exporter = station.exporter(full)
    await exporter.idle()

    assert full.event_requests()[-1].headers["idempotency-key"] == "s:e2:e2:1"
    assert full.ids() == session.durable_ids()


async def test_a_receiver_that_cannot_hide_is_told_of_no_rewind(station: Station, tmp_path: Path) -> None:
    with _offering(tmp_path, rewound=False) as peer:
        session = station.session()
        session.add(10)
        exporter = station.exporter(peer)
        await exporter.idle()
        session.replace(*session.lines()[:5])
        session.add(1)

        await until(lambda: "e10" in peer.ids())
        await exporter.idle()

        assert not any("rewound" in request.json() for request in peer.event_requests())


@asynccontextmanager
async def _reporting(exporter: Exporter, text: Callable[[str], str]) -> AsyncIterator[None]:
    reports = asyncio.create_task(Reports(exporter.running.daemon, text, "laptop").run())
    try:
        yield
    finally:
        reports.cancel()
        await asyncio.gather(reports, return_exceptions=True)


def _reported(peer: Peer, method: str, path: str) -> list[dict[str, Any]]:
    return [one.json() for one in list(peer.requests) if one.method == method and one.path.startswith(path)]


async def test_a_session_is_reported_with_its_title_redacted(station: Station, full: Peer, fast_clock: float) -> None:
    session = station.session()
    (session.directory / "workspace.yaml").write_text("name: fix the hunter2 bug\nbranch: main\n")
    session.add(3)
    exporter = station.exporter(full)

    async with _reporting(exporter, lambda text: text.replace("hunter2", "***")):
        await until(lambda: bool(_reported(full, "PUT", "/agents/sessions/s")))

    report = _reported(full, "PUT", "/agents/sessions/s")[-1]
    assert (report["title"], report["branch"], report["host"]) == ("fix the *** bug", "main", "laptop")
    assert not any(b"hunter2" in request.body for request in full.requests)


async def test_settings_are_told_as_keyed_hashes_once_the_receiver_gives_a_salt(
    station: Station, full: Peer, fast_clock: float
) -> None:
    station.session().add(1)
    exporter = station.exporter(full)
    settings = {"limits.keep_days": "30", "log_level": '"debug"'}

    reports = Reports(exporter.running.daemon, str, "laptop", settings=settings)
    running = asyncio.create_task(reports.run())
    try:
        await until(lambda: len(_reported(full, "POST", "/agents/exporters/")) >= 3)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    first, *told = [one.get("settings") or {} for one in _reported(full, "POST", "/agents/exporters/")[:3]]
    assert first == {}
    assert (set(told[0]["keys"]), set(told[1])) == (set(settings), {"hash"})
    assert told[0]["hash"] == told[1]["hash"]
    assert not any(b"debug" in request.body for request in full.requests)


async def test_what_was_masked_in_events_without_a_day_is_reported_of_the_first_day(
    station: Station, full: Peer, fast_clock: float
) -> None:
    session = station.session()
    stamps = ("2026-11-18T10:00:00.000Z", "yesterday at noon", "")
    session.append(*(event(f"e{n}").replace(b"2026-11-18T10:00:00.000Z", at.encode()) for n, at in enumerate(stamps)))
    masking = Redactors(lambda line, /: Masked(line, ("password",)), lambda text: text)
    exporter = station.exporter(full, redaction=masking)

    async with _reporting(exporter, PASS_THROUGH.text):
        await exporter.idle()
        told = {"1970-01-01": {"password": 2}, "2026-11-18": {"password": 1}}
        await until(lambda: any(one["redactions"] == told for one in _reported(full, "PUT", "/agents/sessions/s")))


async def test_the_exporter_reports_on_its_sinks(station: Station, full: Peer, fast_clock: float) -> None:
    station.session().add(3)
    exporter = station.exporter(full)

    async with _reporting(exporter, PASS_THROUGH.text):
        await until(lambda: len(_reported(full, "POST", "/agents/exporters/")) >= 2)

    report = _reported(full, "POST", "/agents/exporters/")[-1]
    assert report["host"] == "laptop"
    told = {"lag_events": 0, "lag_seconds": 0.0, "last_error": None, "retries": 0, "deleted": 0}
    assert report["sinks"][0].pop("confirmed_at") is not None
    assert report["sinks"] == [{"name": "mission_control", **told, "unconfirmed": 0}]
    assert (report["quarantined"], report["quarantine"], report["behind"]) == (0, {}, {})
    times = [one.at for one in full.requests if one.path.startswith("/agents/exporters/")]
    assert times[1] - times[0] <= 20.0


async def test_the_exporter_reports_what_it_holds_back_and_with_which_sessions_it_is_behind(
    station: Station, full: Peer, fast_clock: float
) -> None:
    slow, level = station.session("slow"), station.session("level")
    slow.add(3)
    level.add(3)
    level.append(b"rubbish\n")
    exporter = station.exporter(full)

    def last() -> dict[str, Any]:
        return [{}, *_reported(full, "POST", "/agents/exporters/")][-1]

    async with _reporting(exporter, PASS_THROUGH.text):
        await until(lambda: last().get("quarantine"))
        await exporter.idle()
        full.script = lambda request: Reply(delay=1.5) if request.is_events else None
        slow.add(4)
        await until(lambda: last()["behind"])
        behind = last()["behind"]
        await until(lambda: last()["behind"] == {})

    assert (last()["quarantined"], last()["quarantine"]) == (1, {"not_json": 1})
    assert list(behind) == ["slow"]
    assert behind["slow"]["lag_events"] == 4
    assert behind["slow"]["lag_seconds"] > 0


async def test_no_report_goes_to_a_receiver_at_the_floor(station: Station, floor: Peer, fast_clock: float) -> None:
    session = station.session()
    session.add(3)
    exporter = station.exporter(floor)

    async with _reporting(exporter, PASS_THROUGH.text):
        await until(lambda: floor.ids() == session.durable_ids())
        await asyncio.sleep(30.0)

    assert {(one.method, one.path) for one in floor.requests} == {
        ("POST", "/agents/sessions"),
        ("POST", "/agents/sessions/remote-s/events"),
    }


async def test_ephemeral_events_are_shown_live_where_that_is_set(station: Station, full: Peer) -> None:
    session = station.session()
    session.add(3)
    exporter = station.exporter(full, live=True)
    await exporter.idle()

    session.append(event("x", ephemeral=True))

    await until(lambda: any(one.path == "/agents/sessions/s/live" for one in full.requests))
    [shown] = [one for one in full.requests if one.path == "/agents/sessions/s/live"]
    assert [one["id"] for one in shown.json()["events"]] == ["x"]
    assert full.ids() == session.durable_ids()


async def test_ephemeral_events_stay_here_unless_set_otherwise(station: Station, full: Peer) -> None:
    session = station.session()
    session.append(event("a"), event("x", ephemeral=True), event("b"))
    exporter = station.exporter(full)

    await exporter.idle()

    assert not any(b"ephemeral" in request.body for request in full.requests)


async def test_the_embedded_mission_control_gets_everything_without_a_socket(station: Station) -> None:
    session = station.session()
    session.add(700, size=300)
    exporter = station.exporter(station.settings({}))

    ended = await exporter.idle()

    assert ended == Exit.DONE
    assert await exporter.differences() == []
    [row] = (await exporter.ask("verify", all=True))["sessions"]
    assert (row["sink"], row["file"], row["receiver"]) == ("local", 700, 700)
