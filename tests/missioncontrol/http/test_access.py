"""Every route with every kind of token, on a session of that token and on one of another token.

Also what follows from it: whose a session is, also once it is deleted, and who may restore it.
"""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
from starlette.routing import Route

from exporter.missioncontrol.http.app import create_app
from exporter.missioncontrol.http.server import serve_http
from exporter.missioncontrol.ingest import write_jobs
from exporter.missioncontrol.store import tokens
from exporter.missioncontrol.store.ownership import owner_of
from exporter.missioncontrol.store.port import Job, Result
from exporter.missioncontrol.store.sqlite.store import SqliteStore as Store
from exporter.missioncontrol.store.token_admin import restore_session

pytestmark = pytest.mark.anyio

KINDS: Final = (*("admin", "shared", "same user", "read", "upload", "auditor", "operator", "revoked", "none"),)
FIGURES: Final = {
    *("GET /api/v1/sessions", "GET /api/v1/sessions/{id}", "GET /api/v1/redactions", "GET /api/v1/audit", "GET /audit"),
    *("GET /readyz", "GET /metrics", "GET /", "GET /style.css", "GET /script.js", "GET /icon.svg"),
    *("GET /fleet", "GET /api/v1/fleet"),
}
"""What an auditor may ask."""
REDACTS: Final = {"Session-Exporter": "1"}
FOREIGN: Final = {"X-Forwarded-For": "203.0.113.5"}
"""Makes strangers of us, although we come from the same user."""
EVENT: Final = {"events": [{"type": "x", "id": "e2", "timestamp": "2026-11-18T10:00:00.000Z", "data": {}}]}
LIVE: Final = {
    "events": [{"type": "x", "id": "l", "timestamp": "2026-11-18T10:00:00.000Z", "data": {}, "ephemeral": True}]
}
NOW: Final = "2026-11-18T10:00:00.000Z"

# A request, with its body; its status for who has full access, who may only read, and who may only upload, of an own
# session and of a foreign one.
TABLE: Final[tuple[tuple[str, Any, int, int, int, int], ...]] = (
    ("POST /agents/sessions", {"id": "ID"}, 200, 403, 200, 409),
    ("POST /agents/sessions", {"id": "ID", "restore": True}, 200, 403, 200, 409),
    ("GET /agents/sessions/{id}", None, 200, 200, 200, 404),
    ("GET /agents/sessions/{id}?ids=1", None, 200, 200, 200, 404),
    ("PUT /agents/sessions/{id}", {"title": "forged"}, 200, 403, 200, 409),
    ("POST /agents/sessions/{id}/events", EVENT, 200, 403, 200, 409),
    ("POST /agents/sessions/{id}/events", {"events": [], "rewound": ["e1"]}, 200, 403, 200, 409),
    ("POST /agents/sessions/{id}/live", LIVE, 200, 403, 200, 409),
    ("GET /agents/sessions/{id}/commands", None, 200, 200, 200, 404),
    ("POST /agents/exporters/{id}", {"version": "1"}, 200, 403, 200, 409),
    ("GET /api/v1/sessions", None, 200, 200, 403, 403),
    ("GET /api/v1/sessions/{id}", None, 200, 200, 403, 403),
    ("GET /api/v1/sessions/{id}/events", None, 200, 200, 403, 403),
    ("GET /api/v1/sessions/{id}/events/{event:path}", None, 200, 200, 403, 403),
    ("GET /api/v1/sessions/{id}/digest", None, 200, 200, 403, 403),
    ("GET /api/v1/sessions/{id}/tree", None, 200, 200, 403, 403),
    ("GET /api/v1/sessions/{id}/trace", None, 501, 501, 403, 403),
    ("GET /api/v1/stream", None, 200, 200, 403, 403),
    ("GET /api/v1/search?q=x", None, 200, 200, 403, 403),
    ("GET /api/v1/notifications", None, 200, 200, 403, 403),
    ("GET /api/v1/redactions", None, 200, 200, 403, 403),
    ("GET /api/v1/exporters", None, 200, 200, 403, 403),
    ("GET /readyz", None, 200, 200, 403, 403),
    ("GET /metrics", None, 200, 200, 403, 403),
    ("GET /", None, 200, 200, 403, 403),
    ("GET /feed", None, 200, 200, 403, 403),
    ("GET /health", None, 200, 200, 403, 403),
    ("GET /sessions/{id}", None, 200, 200, 403, 403),
    ("GET /sessions/{id}/next?kind=error", None, 303, 303, 403, 403),
    ("GET /sessions/{id}/event?id=e1", None, 200, 200, 403, 403),
    ("GET /sessions/{id}/forget", None, 200, 200, 403, 403),
    ("GET /sessions/{id}/waterfall", None, 200, 200, 403, 403),
    ("GET /sessions/{id}/export.{form}", None, 200, 200, 403, 403),
    ("GET /style.css", None, 200, 200, 403, 403),
    ("GET /script.js", None, 200, 200, 403, 403),
    ("GET /icon.svg", None, 200, 200, 403, 403),
    ("POST /sessions/{id}/forget", None, 303, 403, 403, 403),
    ("DELETE /api/v1/sessions/{id}", None, 204, 403, 403, 403),
    ("GET /audit", None, 200, 403, 403, 403),
    ("GET /api/v1/audit", None, 200, 403, 403, 403),
    ("GET /fleet", None, 200, 403, 403, 403),
    ("GET /api/v1/fleet", None, 200, 403, 403, 403),
    ("GET /shares", None, 200, 200, 403, 403),
    ("GET /api/v1/shares", None, 200, 200, 403, 403),
    ("POST /api/v1/shares", {"session": "ID"}, 200, 403, 403, 403),
    ("DELETE /api/v1/shares/{n:int}", None, 204, 403, 403, 403),
    ("POST /api/v1/shares", {"session": "ID", "days": 1}, 200, 403, 403, 403),
    ("POST /shares/{n:int}/revoke", None, 303, 403, 403, 403),
    ("GET /api/v1/tenants", None, 403, 403, 403, 403),
    ("POST /api/v1/tenants", {"name": "ID"}, 403, 403, 403, 403),
    ("DELETE /api/v1/tenants/{name}", None, 403, 403, 403, 403),
)
OF_OPERATORS: Final = {
    "GET /readyz": 200,
    "GET /metrics": 200,
    **dict.fromkeys(("GET /fleet", "GET /api/v1/fleet", "GET /style.css", "GET /script.js", "GET /icon.svg"), 200),
    "GET /api/v1/tenants": 200,
    "POST /api/v1/tenants": 200,
    "DELETE /api/v1/tenants/{name}": 404,
}
"""What an operator may ask, and the answer."""
OPEN: Final = {"GET /healthz", "GET /enter", "POST /enter", "GET /shared/{secret}"}
"""What everybody may ask; test_login.py and test_guard.py have the rest of these."""


class Team:
    """A receiver on loopback with two exporters that may only upload, and with a token of every other kind."""

    def __init__(self, store: Store, client: httpx.AsyncClient) -> None:
        self.store, self.client = store, client
        self.tokens: dict[str, str | None] = {"shared": "shared", "none": None, "same user": None}
        self.make("admin", "all")
        self.make("read", "read")
        self.make("upload", "upload")
        self.make("auditor", "auditor")
        self.make("operator", "operator")
        self.make("other", "upload")
        self.make("revoked", "all")
        store.do(lambda database: tokens.revoke(database, "revoked", NOW))

    def make(self, name: str, scope: tokens.Scope) -> None:
        self.tokens[name] = self.store.do(lambda database: tokens.create(database, name, NOW, scope=scope))

    def headers(self, kind: str) -> dict[str, str]:
        token = self.tokens[kind]
        headers = REDACTS if kind == "same user" else REDACTS | FOREIGN
        return headers | ({"Authorization": f"Bearer {token}"} if token else {})

    async def ask(self, kind: str, request: str, body: Any = None) -> httpx.Response:
        """Send a request; of a stream that does not end only the head is read."""
        method, path = request.split()
        async with self.client.stream(method, path, json=body, headers=self.headers(kind)) as answer:
            if "event-stream" not in answer.headers.get("content-type", ""):
                await answer.aread()
            return answer

    async def session(self, kind: str, id: str) -> None:
        """Upload a session of one event, and report an exporter of the same id."""
        assert (await self.ask(kind, f"POST /agents/exporters/{id}", {"version": "1"})).status_code == 200
        await self.ask(kind, "POST /agents/sessions", {"id": id})
        event = {**EVENT["events"][0], "id": "e1"}
        assert (await self.ask(kind, f"POST /agents/sessions/{id}/events", {"events": [event]})).status_code == 200

    def do(self, job: Job[Result]) -> Result:
        return self.store.do(job)


@pytest.fixture
async def team(store_path: Path) -> AsyncIterator[Team]:
    with Store(store_path) as store:
        app = create_app(store, token="shared", redactor=lambda line: line)
        server = await serve_http(app, "127.0.0.1", 0, explicit_port=True)
        async with httpx.AsyncClient(base_url=server.url) as client:
            yield Team(store, client)
        await server.stop()


def kind_of(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["kind"]


def test_the_table_has_every_route() -> None:
    served = {
        f"{method} {route.path}"
        for route in create_app(Store(":memory:")).routes
        if isinstance(route, Route)
        for method in (route.methods or set()) - {"HEAD"}
    }

    assert {row[0].partition("?")[0] for row in TABLE} | OPEN == served


@pytest.mark.parametrize("kind", KINDS)
async def test_every_route_with_every_kind_of_token(
    team: Team, kind: str, record_property: Callable[[str, object], None]
) -> None:
    expected, found = [], []
    for number, (request, body, full, read, own, foreign) in enumerate(TABLE):
        for owner in ("upload", "other"):
            id = f"{owner}-{number}"
            await team.session(owner, id)
            path = request.replace("{id}", id).replace("{event:path}", "e1").replace("{form}", "md")
            link = (1 if owner == "upload" else 2) + (2 if path.endswith("revoke") else 0)
            path = path.replace("{name}", id).replace("{n:int}", str(link))
            named = {name: id if value == "ID" else value for name, value in body.items()} if body else None
            answer = await team.ask(kind, path, named)
            found.append((request, owner, answer.status_code))
            upload = own if owner == "upload" else foreign
            figures, managed = 200 if request.partition("?")[0] in FIGURES else 403, OF_OPERATORS.get(request, 403)
            restricted = {"read": read, "upload": upload, "auditor": figures, "operator": managed}
            meant = {**restricted, "revoked": 401, "none": 401}.get(kind, full)
            expected.append((request, owner, meant))

    record_property("answers of each kind of token", len(found))
    assert found == expected


async def test_a_foreign_session_is_unknown_to_questions_and_named_to_uploads(team: Team) -> None:
    await team.session("other", "s")

    question = await team.ask("upload", "GET /agents/sessions/s?ids=1")
    unknown = await team.ask("upload", "GET /agents/sessions/never")
    upload = await team.ask("upload", "POST /agents/sessions/s/events", EVENT)

    assert kind_of(question) == kind_of(unknown) == (404, "unknown_session")
    assert question.text.replace("session s", "session never") == unknown.text
    assert kind_of(upload) == (409, "session_of_another_token")
    assert (await team.ask("admin", "GET /api/v1/sessions/s")).json()["events"] == 1


@pytest.mark.parametrize("owner", ["admin", "shared", "same user"])
async def test_what_an_administrator_registered_is_foreign_to_an_uploader(team: Team, owner: str) -> None:
    await team.session(owner, "s")

    assert kind_of(await team.ask("upload", "POST /agents/sessions", {"id": "s"})) == (409, "session_of_another_token")


async def test_an_exporter_belongs_to_the_token_that_reported_it_first(team: Team) -> None:
    await team.session("upload", "x")
    forged = {"version": "6.6.6", "owner": "other"}

    foreign = await team.ask("other", "POST /agents/exporters/x", forged)
    by_admin = await team.ask("admin", "POST /agents/exporters/x", forged)
    again = await team.ask("upload", "POST /agents/exporters/x", {"version": "2"})
    (shown,) = (await team.ask("admin", "GET /api/v1/exporters")).json()["exporters"]

    assert kind_of(foreign) == (409, "exporter_of_another_token")
    assert (by_admin.status_code, again.status_code) == (200, 200)
    assert (shown["version"], shown["owner"], shown["token"]) == ("2", "upload", "upload")


async def test_an_exporter_reported_before_they_had_owners_becomes_the_first_reporters(team: Team) -> None:
    team.do(lambda database: write_jobs.report_exporter(database, "x", {}, NOW, tokens.OWNER))
    team.do(lambda database: database.execute("UPDATE exporters SET report = '{}'"))

    first = await team.ask("upload", "POST /agents/exporters/x", {})
    second = await team.ask("other", "POST /agents/exporters/x", {})

    assert (first.status_code, second.status_code) == (200, 409)


async def test_an_administrator_who_uploads_to_a_session_takes_it_from_nobody(team: Team) -> None:
    await team.session("upload", "s")

    by_admin = await team.ask("admin", "POST /agents/sessions/s/events", EVENT)
    again = await team.ask("upload", "GET /agents/sessions/s")

    assert (by_admin.status_code, again.status_code, again.json()["ack"]["count"]) == (200, 200, 2)


async def test_a_new_token_of_the_name_keeps_the_sessions(team: Team) -> None:
    await team.session("upload", "s")
    team.do(lambda database: tokens.revoke(database, "upload", NOW))
    revoked = await team.ask("upload", "GET /agents/sessions/s")
    team.make("upload", "upload")

    assert revoked.status_code == 401
    assert (await team.ask("upload", "GET /agents/sessions/s")).status_code == 200


async def test_a_session_that_is_nobodys_becomes_the_first_uploaders(team: Team) -> None:
    team.do(lambda database: write_jobs.register(database, "s", "s", NOW))  # as stored before sessions had owners

    asked = await team.ask("other", "GET /agents/sessions/s")
    first = await team.ask("upload", "POST /agents/sessions/s/events", EVENT)
    second = await team.ask("other", "POST /agents/sessions/s/events", EVENT)

    assert (asked.status_code, first.status_code, second.status_code) == (200, 200, 409)
    assert team.do(lambda database: owner_of(database, "s")) == "upload"


async def test_what_was_deleted_is_restored_by_an_administrator_only_and_stays_its_owners(team: Team) -> None:
    await team.session("upload", "s")
    await team.ask("admin", "DELETE /api/v1/sessions/s")
    wanted = {"id": "s", "restore": True}

    gone = await team.ask("upload", "POST /agents/sessions", {"id": "s"})
    refused = await team.ask("upload", "POST /agents/sessions", wanted)
    foreign = await team.ask("other", "POST /agents/sessions", wanted)
    still = await team.ask("admin", "GET /api/v1/sessions/s")
    restored = restore_session(team.store.path or Path(), "s")
    stolen = await team.ask("other", "POST /agents/sessions", {"id": "s"})
    again = await team.ask("upload", "POST /agents/sessions", wanted)

    assert kind_of(gone) == (410, "deleted_session")
    assert kind_of(refused) == (403, "restore_needs_admin")
    assert "exporter mission-control restore s" in refused.json()["error"]["hint"]
    assert kind_of(foreign) == kind_of(stolen) == (409, "session_of_another_token")
    assert (still.status_code, restored, again.status_code) == (410, {"restored": "s"}, 200)
    assert again.json()["ack"]["count"] == 0


async def test_an_administrator_restores_by_uploading_and_leaves_it_to_its_owner(team: Team) -> None:
    await team.session("upload", "s")
    await team.ask("admin", "DELETE /api/v1/sessions/s")

    restored = await team.ask("admin", "POST /agents/sessions", {"id": "s", "restore": True})

    assert restored.status_code == 200
    assert (await team.ask("upload", "GET /agents/sessions/s")).status_code == 200
    assert (await team.ask("other", "GET /agents/sessions/s")).status_code == 404
