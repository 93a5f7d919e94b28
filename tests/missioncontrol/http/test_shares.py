"""Share links: one session or event for who has the link, redacted once more, for a time."""

from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from exporter.core.events.redaction import Masked, Redacted, Refused
from exporter.errors import UsageError
from exporter.missioncontrol.store import tenants, token_admin, tokens
from exporter.missioncontrol.store.opening import open_store
from exporter.missioncontrol.store.port import Store
from tests.missioncontrol.conftest import DECLARED, Opener

pytestmark = pytest.mark.anyio
NOW = "2026-11-18T10:00:00.000Z"
STRANGER = {"Authorization": "", "Host": "mc.team.example"}


class Clock:
    """What the receiver takes for the time."""

    def __init__(self) -> None:
        self.now = datetime(2026, 11, 18, 10, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


def strict(line: bytes, /) -> Redacted:
    """Masks what was no secret yet when it was stored, and refuses what it cannot read."""
    if b"unreadable" in line:
        return Refused("out_of_time")
    return Masked(line.replace(b"hunter2", b"[masked]"), ("password",)) if b"hunter2" in line else line


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def shop(
    store: Store, open_client: Opener, clock: Clock, make_event: Callable[..., bytes], make_body: Callable[..., bytes]
) -> AsyncIterator[httpx.AsyncClient]:
    """The client of an admin of the tenant red, in which there is a session."""
    red = store.tenant(tenants.create(store, "red", NOW))
    token = red.do(lambda database: tokens.create(database, "anna", NOW, tenant="red"))
    headers = {**DECLARED, "Authorization": f"Bearer {token}"}
    async with open_client(store, headers=headers, redactor=strict, clock=clock, audits=True, token="own") as client:
        await client.post("/agents/sessions", json={"id": "s"})
        await client.put("/agents/sessions/s", json={"title": "hunter2 title", "host": "hunter2-host"})
        said = ["my hunter2 is told", "unreadable thing", "and the end"]
        events = [make_event(f"e{n}", "user.message", data={"content": text}) for n, text in enumerate(said)]
        await client.post("/agents/sessions/s/events", content=make_body(*events))
        yield client


async def share(client: httpx.AsyncClient, **wanted: Any) -> str:
    answer = await client.post("/api/v1/shares", json={"session": "s", **wanted})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["path"])


async def test_a_link_shows_its_session_redacted_once_more_and_nothing_else(shop: httpx.AsyncClient) -> None:
    path = await share(shop)
    owner = await shop.get("/api/v1/sessions/s/events")

    shown = await shop.get(path, headers=STRANGER)
    others = [await shop.get(url, headers=STRANGER) for url in ("/api/v1/sessions/s", f"{path}/more", "/shared/")]
    changing = [await shop.request(method, path, headers=STRANGER) for method in ("POST", "DELETE", "PUT")]

    assert "hunter2" in owner.text
    assert shown.status_code == 200
    assert "my [masked] is told" in shown.text
    assert "and the end" in shown.text
    assert not any(word in shown.text for word in ("hunter2", "unreadable", "<script", 'href="/'))
    assert shown.headers["cache-control"] == "no-store"
    assert "default-src 'none'" in shown.headers["content-security-policy"]
    assert [one.status_code for one in others] == [403, 404, 404]
    assert {one.status_code for one in changing} == {404}


async def test_a_link_to_an_event_shows_that_event(shop: httpx.AsyncClient) -> None:
    first, refused = await share(shop, event="e0"), await share(shop, event="e1")

    shown = await shop.get(first, headers=STRANGER)

    assert shown.json()["data"]["content"] == "my [masked] is told"
    assert (await shop.get(refused, headers=STRANGER)).status_code == 404
    assert (await shop.post("/api/v1/shares", json={"session": "s", "event": "none"})).status_code == 404
    assert (await shop.post("/api/v1/shares", json={"session": "none"})).status_code == 404
    assert (await shop.post("/api/v1/shares", json={"session": "s", "days": 91})).status_code == 400


async def test_a_link_is_listed_and_counted_and_ends_when_it_is_revoked(shop: httpx.AsyncClient) -> None:
    path, other = await share(shop), await share(shop, event="e0")
    for _ in range(2):
        await shop.get(path, headers=STRANGER)
    listed = (await shop.get("/api/v1/shares?session=s")).json()["shares"]
    revoked = await shop.delete(f"/api/v1/shares/{listed[1]['n']}")
    again = await shop.delete(f"/api/v1/shares/{listed[1]['n']}")

    assert [(one["event"], one["opened"], one["creator"]) for one in listed] == [("e0", 0, "anna"), (None, 2, "anna")]
    assert path.rpartition("/")[2] not in str(listed)
    assert (revoked.status_code, again.status_code) == (204, 404)
    assert (await shop.get(path, headers=STRANGER)).status_code == 404
    assert (await shop.get(other, headers=STRANGER)).status_code == 200
    entries = (await shop.get("/api/v1/audit")).json()["entries"]
    actions = [(one["who"], one["action"]) for one in reversed(entries)]
    by_link = (f"(link {listed[1]['n']})", "read")
    assert actions[:4] == [("anna", "share"), ("anna", "share"), by_link, by_link]
    assert ("anna", "unshare") in actions


async def test_a_link_ends_with_its_time_and_with_its_session(shop: httpx.AsyncClient, clock: Clock) -> None:
    short, long = await share(shop, days=1), await share(shop, days=2)
    clock.now += timedelta(days=1, seconds=1)

    assert [(await shop.get(path, headers=STRANGER)).status_code for path in (short, long)] == [404, 200]
    await shop.delete("/api/v1/sessions/s")
    assert (await shop.get(long, headers=STRANGER)).status_code == 404


@pytest.mark.parametrize("change", ["x{}", "blue.{}", "{}x"])
async def test_another_secret_is_no_link(shop: httpx.AsyncClient, change: str) -> None:
    secret = (await share(shop)).rpartition("/")[2]
    bare = secret.removeprefix("red.")

    assert secret.startswith("red.")
    for wrong in (bare, change.format(bare), f"red.{change.format(bare)}"):
        assert (await shop.get(f"/shared/{wrong}", headers=STRANGER)).status_code == 404


async def test_without_a_redactor_nothing_is_shared(store: Store, open_client: Opener) -> None:
    async with open_client(store) as client:
        await client.post("/agents/sessions", json={"id": "s"})
        answer = await client.post("/api/v1/shares", json={"session": "s"})

    assert (answer.status_code, answer.json()["error"]["kind"]) == (503, "no_redactor")


async def test_the_page_lists_links_with_their_counts_and_revokes_them(shop: httpx.AsyncClient, clock: Clock) -> None:
    first, _ = await share(shop), await share(shop, event="e2", days=1)
    for _ in range(2):
        assert (await shop.get(first, headers=STRANGER)).status_code == 200
    clock.now += timedelta(days=2)

    page = await shop.get("/shares")
    number = min(one["n"] for one in (await shop.get("/api/v1/shares")).json()["shares"])
    revoked, again = [await shop.post(f"/shares/{number}/revoke") for _ in range(2)]
    after = await shop.get("/shares")

    assert "1 link in force, 1 ended; opened 2 times in all" in page.text
    assert page.text.count("/revoke") == 1  # of the one in force
    assert "expired" in page.text
    assert (revoked.status_code, revoked.headers["location"], again.status_code) == (303, "/shares", 404)
    assert "0 links in force, 2 ended" in after.text
    assert (await shop.get(first, headers=STRANGER)).status_code == 404
    assert (await shop.get("/api/v1/shares")).json()["counts"] == {"in_force": 0, "ended": 2, "opened": 2}


async def test_the_command_lists_and_revokes_beside_a_receiver(address: str, open_client: Opener) -> None:
    with open_store(address) as store:
        async with open_client(store, redactor=strict, token="own", audits=True) as client:
            client.headers["Authorization"] = "Bearer own"
            await client.post("/agents/sessions", json={"id": "s"})
            path = await share(client)
            listed = token_admin.list_shares(address)
            opened = await client.get(path, headers=STRANGER)
            number = listed["shares"][0]["n"]
            token_admin.revoke_share(address, number)
            refused = await client.get(path, headers=STRANGER)
            noted = (await client.get("/api/v1/audit")).json()["entries"][0]

    assert (listed["counts"], opened.status_code, refused.status_code) == (
        {"in_force": 1, "ended": 0, "opened": 0},
        200,
        404,
    )
    assert (noted["who"], noted["action"], noted["session"]) == ("(command)", "unshare", "s")
    with pytest.raises(UsageError, match=f"No link {number} is in force"):
        token_admin.revoke_share(address, number)
