"""The audit log over HTTP: who read, searched, exported and deleted; and tags that are alike at every receiver."""

import asyncio
import re
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from exporter.core.events.redaction import Masked, Redacted
from exporter.missioncontrol.http.request_intake import Floor
from exporter.missioncontrol.store import token_admin, tokens
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


async def test_tenants_tokens_keys_and_restores_are_noted_on_either_way(
    address: str, open_client: Opener, make_event: Callable[..., bytes], make_body: Callable[..., bytes]
) -> None:
    token_admin.create_tenant(address, "red")
    token_admin.create_token(address, "anna", "all", "red")
    token_admin.revoke_token(address, "anna", "red")
    token_admin.rotate_key(address, "red")
    red = token_admin.list_audit(address, 10, "red")["entries"]
    await asyncio.to_thread(token_admin.remove_tenant, address, "red")
    with open_store(address) as store:
        olga = store.do(lambda database: tokens.create(database, "olga", NOW, scope="operator"))
        async with open_client(store, audits=True, token="own") as client:
            operator, owner = ({"Authorization": f"Bearer {token}"} for token in (olga, "own"))
            await client.post("/api/v1/tenants", json={"name": "blue"}, headers=operator)
            await client.delete("/api/v1/tenants/blue", headers=operator)
            await client.delete("/api/v1/tenants/never", headers=operator)
            client.headers.update(owner)
            await uploaded(client, make_body(make_event("e1")))
            for _ in range(2):
                await client.delete("/api/v1/sessions/s")
                await client.post("/agents/sessions", json={"id": "s", "restore": True})
            await client.post("/agents/sessions", json={"id": "s", "restore": True})  # nothing is to be restored
            await client.delete("/api/v1/sessions/s")
    token_admin.restore_session(address, "s")
    entries = token_admin.list_audit(address, 20)["entries"]

    assert [(one["who"], one["action"], one["detail"]) for one in reversed(red)] == [
        ("(command)", "token", "anna: all"),
        ("(command)", "revoke", "anna"),
        ("(command)", "rotate key", None),
    ]
    assert [(one["who"], one["action"], one["session"] or one["detail"]) for one in reversed(entries)] == [
        ("(command)", "create tenant", "red"),
        ("(command)", "remove tenant", "red"),
        ("olga", "create tenant", "blue"),
        ("olga", "remove tenant", "blue"),
        *([("(owner)", "delete", "s"), ("(owner)", "restore", "s")] * 2),
        ("(owner)", "delete", "s"),
        ("(command)", "restore", "s"),
    ]
