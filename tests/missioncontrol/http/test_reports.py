"""Reports of sessions and exporters, and what becomes of events from clients that do not redact."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from exporter.core.events.redaction import Redacted
from exporter.missioncontrol.store.sqlite.store import SqliteStore as Store

pytestmark = pytest.mark.anyio
Make = Callable[..., bytes]


async def post(client: httpx.AsyncClient, body: bytes, session: str = "s", **options: Any) -> httpx.Response:
    return await client.post(f"/agents/sessions/{session}/events", content=body, **options)


async def shown(client: httpx.AsyncClient, session: str = "s") -> list[str]:
    answer = await client.get(f"/agents/sessions/{session}?ids=1")
    return [id for id, _ in answer.json()["items"]]


async def test_reports_are_merged_and_shown(client: httpx.AsyncClient) -> None:
    redactions = {"2026-11-18": {"aws": 2, "jwt": 1}}
    await client.put("/agents/sessions/s", json={"title": "T", "host": "h", "redactions": redactions, "new_field": 1})
    await client.put("/agents/sessions/s", json={"branch": "b"})

    session = (await client.get("/api/v1/sessions/s")).json()

    assert [session[name] for name in ("title", "host", "branch", "masked")] == ["T", "h", "b", 3]


async def test_a_reported_state_holds_until_the_next_events(
    client: httpx.AsyncClient, make_event: Make, make_body: Make
) -> None:
    async def state() -> str:
        return str((await client.get("/api/v1/sessions/s")).json()["state"])

    await post(client, make_body(make_event("a", "user.message")))
    await client.put("/agents/sessions/s", json={"state": "crashed"})
    crashed = await state()
    await client.put("/agents/sessions/s", json={"title": "T"})
    still = await state()
    await post(client, make_body(make_event("b", "session.resume")))

    assert (crashed, still, await state()) == ("crashed", "crashed", "idle")


async def test_a_state_that_is_none_is_refused(client: httpx.AsyncClient) -> None:
    assert (await client.put("/agents/sessions/s", json={"state": "asleep"})).status_code == 400


async def test_exporters_report_how_they_are(client: httpx.AsyncClient) -> None:
    report = {"version": "0.1.0", "host": "h", "sinks": [{"name": "local", "lag_events": 3}], "quarantined": 1}

    await client.post("/agents/exporters/x1", json=report)

    (exporter,) = (await client.get("/api/v1/exporters")).json()["exporters"]
    assert exporter | report == exporter
    assert exporter["id"] == "x1"


async def test_who_does_not_redact_is_redacted_here_before_anything_is_stored(
    store: Store, open_client: Any, make_event: Make, make_body: Make, redact: Callable[[bytes], Redacted]
) -> None:
    async with open_client(store, redactor=redact, headers={}) as client:
        await client.post("/agents/sessions", json={"id": "s"})
        events = [make_event("a"), make_event("b", data={"p": "hunter2"}), make_event("c", data={"p": "unreadable"})]

        answer = await post(client, make_body(*events))

        assert answer.json()["ack"]["rejected"] == ["c"]
        stored = (await client.get("/api/v1/sessions/s/events")).content
        assert b"hunter2" not in stored
        assert b"[masked]" in stored
        assert events[0] in stored
        assert (await client.get("/api/v1/sessions/s")).json()["masked"] == 1


async def test_who_declares_the_capability_is_stored_as_sent(
    store: Store, open_client: Any, make_event: Make, make_body: Make, redact: Callable[[bytes], Redacted]
) -> None:
    async with open_client(store, redactor=redact) as client:
        await client.post("/agents/sessions", json={"id": "s"})
        event = make_event("a", data={"p": "hunter2"})

        await post(client, make_body(event))

        assert event in (await client.get("/api/v1/sessions/s/events")).content


async def test_without_a_redactor_an_undeclared_client_is_turned_away(
    store: Store, open_client: Any, make_event: Make, make_body: Make
) -> None:
    async with open_client(store, headers={}) as client:
        await client.post("/agents/sessions", json={"id": "s"})

        answers = [
            await post(client, make_body(make_event("a"))),
            await client.post("/agents/sessions/s/live", content=make_body(make_event("a", ephemeral=True))),
        ]

        assert [(answer.status_code, answer.json()["error"]["kind"]) for answer in answers] == [
            (503, "no_redactor")
        ] * 2
        assert await shown(client) == []
        assert (await client.put("/agents/sessions/s", json={"title": "T"})).status_code == 403
