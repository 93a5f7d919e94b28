"""The audit log over HTTP: who read, searched, exported and deleted; and tags that are alike at every receiver."""

import re
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from exporter.core.events.redaction import Masked, Redacted
from exporter.missioncontrol.http.request_intake import Floor
from exporter.missioncontrol.store import tokens
from exporter.missioncontrol.store.opening import open_store
from exporter.missioncontrol.store.port import Database, Store, StoreFull
from tests.missioncontrol.conftest import Opener

pytestmark = pytest.mark.anyio
NOW = "2026-11-18T10:00:00.000Z"


async def uploaded(client: httpx.AsyncClient, body: bytes) -> None:
    await client.post("/agents/sessions", json={"id": "s"})
    assert (await client.post("/agents/sessions/s/events", content=body)).status_code == 200


async def test_what_people_do_is_noted_with_their_name(
    store: Store, open_client: Opener, make_event: Callable[..., bytes], make_body: Callable[..., bytes]
) -> None:
    anna = store.do(lambda database: tokens.create(database, "anna", NOW))
    async with open_client(store, audits=True) as client:
        await uploaded(client, make_body(make_event("e1")))
        client.headers["Authorization"] = f"Bearer {anna}"
        for _ in range(3):  # the same thing is noted once
            await client.get("/sessions/s")
            await client.get("/api/v1/sessions/s/events")
        await client.get("/api/v1/search?q=secretword")
        for _ in range(2):
            await client.get("/sessions/s/export.md")
        await client.get("/sessions/nobody")
        await client.get("/metrics")
        await client.get("/api/v1/audit")
        await client.delete("/api/v1/sessions/s")
        entries = (await client.get("/api/v1/audit")).json()["entries"]
        page = await client.get("/audit")
        of_session = (await client.get("/api/v1/audit?session=s&limit=1")).json()

    told = [(one["who"], one["action"], one["session"]) for one in reversed(entries)]
    assert told == [
        ("anna", "read", "s"),
        ("anna", "search", None),
        ("anna", "export", "s"),
        ("anna", "delete", "s"),
    ]
    assert "secretword" not in page.text
    assert page.text.count('<td data-name="Who">anna</td>') == 4
    assert ([one["action"] for one in of_session["entries"]], of_session["next"]) == (["delete"], str(entries[0]["n"]))


async def test_who_needs_no_token_is_noted_too_and_the_embedded_receiver_keeps_no_log(
    store: Store, open_client: Opener, make_event: Callable[..., bytes], make_body: Callable[..., bytes]
) -> None:
    async with open_client(store) as client:
        await uploaded(client, make_body(make_event("e1")))
        await client.get("/sessions/s")
        before = (await client.get("/api/v1/audit")).json()["entries"]
    async with open_client(store, audits=True) as client:
        await client.get("/sessions/s")
        after = (await client.get("/api/v1/audit")).json()["entries"]

    assert (before, [(one["who"], one["action"]) for one in after]) == ([], [("(owner)", "read")])


async def test_what_cannot_be_noted_is_not_shown(
    store: Store,
    open_client: Opener,
    make_event: Callable[..., bytes],
    make_body: Callable[..., bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with open_client(store, audits=True) as client:
        await uploaded(client, make_body(make_event("e1", data={"content": "wombat"})))

        async def full(_: Callable[[Database], Any]) -> None:
            raise StoreFull("the disk is full")

        monkeypatch.setattr(store, "write", full)
        read = await client.get("/api/v1/sessions/s/events")

    assert (read.status_code, "wombat" in read.text) == (503, False)


def tagging(key: bytes) -> Floor:
    """A redactor whose tag is that of its key."""

    def redact(line: bytes, /) -> Redacted:
        return Masked(line.replace(b"hunter2", b"tag-" + key.hex().encode()), ("password",))

    return Floor(redact)


async def test_every_receiver_redacts_with_the_key_of_the_tenant_and_a_new_one_holds_at_once(
    address: str, open_client: Opener, make_event: Callable[..., bytes], make_body: Callable[..., bytes]
) -> None:
    async def tag(client: httpx.AsyncClient, id: str) -> str:
        await client.post("/agents/sessions", json={"id": id})
        body = make_body(make_event("e1", data={"content": "my hunter2"}))
        await client.post(f"/agents/sessions/{id}/events", content=body)
        (found,) = re.findall(r"tag-([0-9a-f]+)", (await client.get(f"/api/v1/sessions/{id}/events")).text)
        return str(found)

    with open_store(address) as one, open_store(address) as other:
        clients = [open_client(store, floor_of=tagging, headers={}) for store in (one, other)]
        async with clients[0] as first, clients[1] as second:
            before = [await tag(first, "a"), await tag(second, "b")]
            one.do(tokens.rotate_redaction_key)
            after = [await tag(first, "c"), await tag(second, "d")]

    assert (len(set(before)), len(set(after)), before[0] == after[0]) == (1, 1, False)
