"""Two tenants on one receiver: whatever a token of one asks, nothing of the other is in the answer, on both stores.

An id of the other tenant is answered as one that nobody ever used, to the last byte.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Final

import httpx
import pytest

from exporter.missioncontrol.http.app import create_app
from exporter.missioncontrol.http.server import serve_http
from exporter.missioncontrol.store import queries, session_row, tenants, tokens
from exporter.missioncontrol.store.opening import open_store
from exporter.missioncontrol.store.port import Database
from tests.missioncontrol.http.test_access import FOREIGN, LIVE, TABLE
from tests.missioncontrol.postgres import Server

pytestmark = pytest.mark.anyio

NOW: Final = "2026-11-18T10:00:00.000Z"
HEADERS: Final = {"Session-Exporter": "1", **FOREIGN}
WORD: Final = "quokka"
"""What only the sessions of blue say."""
SAID: Final = re.compile(rf"{WORD}[ -]?(title|said|failed|exporter|host|kind)")
SCOPES: Final[tuple[tokens.Scope, ...]] = ("all", "read", "upload", "auditor")


class Teams:
    """A receiver with the tenants red and blue, and tokens of each; everybody asks through HTTP."""

    def __init__(self, address: str) -> None:
        self.store = open_store(address)
        self.tokens: dict[str, str] = {"shared": "shared"}
        for tenant in ("red", "blue"):
            store = self.store.tenant(tenants.create(self.store, tenant, NOW))
            for scope in SCOPES:
                self.tokens[f"{tenant} {scope}"] = store.do(
                    lambda database, of=(scope, tenant): tokens.create(database, of[0], NOW, scope=of[0], tenant=of[1])  # type: ignore[misc]
                )
        for kind in ("operator", "read"):
            self.tokens[f"default {kind}"] = self.store.do(
                lambda database, kind=kind: tokens.create(database, kind, NOW, scope=kind)  # type: ignore[misc]
            )
        self.client = httpx.AsyncClient()

    async def ask(self, kind: str, request: str, body: Any = None) -> httpx.Response:
        """Send a request; of a stream only the head is read."""
        method, path = request.split()
        headers = HEADERS | {"Authorization": f"Bearer {self.tokens[kind]}"}
        async with self.client.stream(method, path, json=body, headers=headers) as answer:
            if "event-stream" not in answer.headers.get("content-type", ""):
                await answer.aread()
            return answer

    async def upload(self, kind: str, id: str, text: str) -> httpx.Response:
        """Store a session that says a text, wherever a session can say one, and report an exporter of that name."""
        await self.ask(kind, "POST /agents/sessions", {"id": id})
        await self.ask(kind, f"PUT /agents/sessions/{id}", {"title": f"{text} title", "host": f"{text} host"})
        await self.ask(kind, f"POST /agents/exporters/{text}-exporter", {"version": "1", "host": f"{text} host"})
        told = [
            {"type": "user.message", "data": {"content": f"{text} said"}},
            {"type": "session.error", "data": {"message": f"{text} failed", "errorType": f"{text} kind"}},
        ]
        events = [{"id": f"e{n}", "timestamp": NOW, **one} for n, one in enumerate(told, 1)]
        await self.ask(kind, f"POST /agents/sessions/{id}/live", LIVE)
        return await self.ask(kind, f"POST /agents/sessions/{id}/events", {"events": events})


@pytest.fixture
async def teams(address: str) -> AsyncIterator[Teams]:
    teams = Teams(address)
    with teams.store as store:
        app = create_app(store, token="shared", audits=True, redactor=lambda line: line)
        server = await serve_http(app, "127.0.0.1", 0, explicit_port=True)
        async with httpx.AsyncClient(base_url=server.url, timeout=60) as teams.client:
            for tenant, text in (("blue", WORD), ("red", "wombat")):
                for id in ("same", f"of-{tenant}"):
                    stored = await teams.upload(f"{tenant} upload", id, text)
                    assert stored.json()["accepted"] == 2
            yield teams
        await server.stop()


def asked(request: str, body: Any, id: str) -> tuple[str, Any]:
    path = request.replace("{id}", id).replace("{event:path}", "e1").replace("{form}", "jsonl")
    path = path.replace("{name}", id).replace("{n:int}", "1")
    return path, {name: id if value == "ID" else value for name, value in body.items()} if body else None


@pytest.mark.parametrize("kind", ["red all", "red read", "red upload", "red auditor", "shared", "default operator"])
async def test_nothing_of_another_tenant_is_in_any_answer(
    teams: Teams, kind: str, record_property: Callable[[str, object], None]
) -> None:
    searches = ("GET /api/v1/search?q=quokka", "GET /?q=quokka", "GET /api/v1/sessions?q=quokka")
    more = (*searches, "GET /api/v1/stream?session=of-blue", "GET /api/v1/audit?session=of-blue")
    told, different = [], []
    rows = [(request, body) for request, body, *_ in TABLE if "tenants" not in request]
    for request, body in (*rows, *((one, None) for one in more)):
        foreign, never = [
            await teams.ask(kind, *asked(request.replace("of-blue", id), body, id)) for id in ("of-blue", "nobody-ever")
        ]
        shown = (answer.text if answer.is_stream_consumed else "" for answer in (foreign, never))
        first, second = (text.replace("of-blue", "nobody-ever") for text in shown)
        if SAID.search(first):
            told.append(request)
        if (
            "{id}" in request
            and foreign.request.method == "GET"
            and (foreign.status_code, first)
            != (
                never.status_code,
                second,
            )
        ):
            different.append((request, foreign.status_code, never.status_code))

    record_property("requests that show nothing of another tenant", 2 * (len(rows) + len(more)))
    assert (told, different) == ([], [])
    theirs = await teams.ask("blue all", "GET /api/v1/sessions/of-blue/events")
    assert [event["id"] for event in theirs.json()["events"]] == ["e1", "e2"]
    assert WORD in theirs.text


async def test_the_same_id_is_a_session_of_each_tenant(teams: Teams) -> None:
    deleted = await teams.ask("red all", "DELETE /api/v1/sessions/same")
    ours = await teams.ask("red all", "GET /api/v1/sessions/same")
    theirs = await teams.ask("blue all", "GET /api/v1/sessions/same")
    again = await teams.upload("blue upload", "same", WORD)

    assert (deleted.status_code, ours.status_code, theirs.json()["title"]) == (204, 410, f"{WORD} title")
    assert again.json()["duplicates"] == 2


async def test_each_tenant_sees_its_own_figures_and_an_operator_those_of_all(teams: Teams) -> None:
    await teams.upload("red upload", "third", "wombat")

    red, blue, default = [await teams.ask(kind, "GET /metrics") for kind in ("red all", "blue auditor", "shared")]
    every = await teams.ask("default operator", "GET /metrics")
    listed = (await teams.ask("default operator", "GET /api/v1/tenants")).json()["tenants"]

    held = [
        next(line for line in one.text.splitlines() if line.startswith("exporter_receiver_events "))
        for one in (red, blue, default)
    ]
    assert held == [f"exporter_receiver_events {count}" for count in (6, 4, 0)]
    assert 'exporter_receiver_events{tenant="red"} 6' in every.text
    assert 'exporter_receiver_events{tenant="blue"} 4' in every.text
    assert [(one["name"], one["sessions"], one["events"]) for one in listed] == [
        ("default", 0, 0),
        ("red", 3, 6),
        ("blue", 2, 4),
    ]
    assert WORD not in every.text + json.dumps(listed)


async def test_an_auditor_sees_figures_without_titles_and_texts(teams: Teams) -> None:
    listed = await teams.ask("blue auditor", "GET /api/v1/sessions")
    one = await teams.ask("blue auditor", "GET /api/v1/sessions/of-blue")
    page = await teams.ask("blue auditor", "GET /")
    searched = await teams.ask("blue auditor", f"GET /api/v1/sessions?q={WORD}")

    assert {session["events"] for session in listed.json()["sessions"]} == {2}
    assert (one.json()["title"], one.json()["host"], one.json()["events"]) == (None, None, 2)
    assert "of-blue" in page.text
    assert WORD not in listed.text + one.text + page.text
    assert searched.status_code == 403


async def test_a_stream_brings_what_happens_in_its_tenant_only(teams: Teams) -> None:
    headers = {"Authorization": f"Bearer {teams.tokens['red read']}"}
    async with teams.client.stream("GET", "/api/v1/stream", headers=headers) as stream:
        lines = stream.aiter_lines()
        assert await anext(lines) == ": open"
        await teams.upload("blue upload", "later", WORD)
        await teams.upload("red upload", "last", "wombat")
        seen = list[str]()
        async with asyncio.timeout(60):
            while not any('"last"' in line for line in seen):
                seen.append(await anext(lines))

    assert not any("later" in line or WORD in line for line in seen)


async def test_a_removed_tenant_is_gone_at_once_and_its_name_begins_again_with_nothing(teams: Teams) -> None:
    removed = await teams.ask("default operator", "DELETE /api/v1/tenants/blue")
    assert removed.status_code == 204, removed.text
    refused = await teams.ask("blue all", "GET /api/v1/sessions")
    again = await teams.ask("default operator", "DELETE /api/v1/tenants/blue")
    default = await teams.ask("default operator", "DELETE /api/v1/tenants/default")

    assert (refused.status_code, again.status_code, default.status_code) == (401, 404, 404)
    made = await teams.ask("default operator", "POST /api/v1/tenants", {"name": "blue"})
    twice = await teams.ask("default operator", "POST /api/v1/tenants", {"name": "blue"})
    assert (made.status_code, twice.status_code) == (200, 409)
    new = tenants.store_of(teams.store, "blue")
    old, teams.tokens["new"] = (
        teams.tokens["blue all"],
        new.do(lambda database: tokens.create(database, "n", NOW, tenant="blue")),
    )
    assert (await teams.ask("new", "GET /api/v1/sessions")).json()["sessions"] == []
    assert old.split(".")[0] == teams.tokens["new"].split(".")[0]
    assert (await teams.ask("blue all", "GET /api/v1/sessions")).status_code == 401
    assert (await teams.ask("red all", "GET /api/v1/sessions/same")).status_code == 200


@pytest.fixture
def forgetful(teams: Teams, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bug in the query of a session: it forgets what it was asked for, and takes the first there is."""

    def columns_of(database: Database, _: str, columns: str) -> Any:
        return database.execute(f"SELECT {columns} FROM sessions ORDER BY n LIMIT 1").fetchone()

    for module in (session_row, queries):
        monkeypatch.setattr(module, "columns_of", columns_of)


@pytest.mark.usefixtures("forgetful")
async def test_a_bug_in_a_query_shows_nothing_of_another_tenant(teams: Teams) -> None:
    session = await teams.ask("red all", "GET /api/v1/sessions/anything")
    events = await teams.ask("red all", "GET /api/v1/sessions/anything/events")

    assert session.json()["title"] == "wombat title"
    assert WORD not in session.text + events.text


@pytest.fixture
def without_policies(postgres_server: Server) -> Iterator[None]:
    tables = ("sessions", "events")
    for table in tables:
        postgres_server.execute(f"ALTER TABLE mission_control.{table} DISABLE ROW LEVEL SECURITY", "shared")
    yield
    for table in tables:
        postgres_server.execute(f"ALTER TABLE mission_control.{table} ENABLE ROW LEVEL SECURITY", "shared")


@pytest.mark.usefixtures("forgetful", "without_policies")
@pytest.mark.parametrize("address", ["postgresql"], indirect=True)
async def test_it_is_row_level_security_that_stops_that_bug(teams: Teams) -> None:
    """The control of the test before."""
    session = await teams.ask("red all", "GET /api/v1/sessions/anything")

    assert session.json()["title"] == f"{WORD} title"
