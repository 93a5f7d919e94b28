"""Tokens of their own for exporters, certificates, and how long sessions are kept."""

import asyncio
import shutil
import ssl
import subprocess
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from exporter.errors import SettingsError, UsageError
from exporter.missioncontrol.http.app import create_app
from exporter.missioncontrol.http.server import Certificate, serve_http
from exporter.missioncontrol.receiver import Receiver
from exporter.missioncontrol.store import tokens
from exporter.missioncontrol.store.opening import open_store
from exporter.missioncontrol.store.retention import Retention
from exporter.missioncontrol.store.sqlite.store import SqliteStore as Store
from exporter.missioncontrol.store.token_admin import create_token, list_tokens, revoke_token

pytestmark = pytest.mark.anyio
Make = Callable[..., bytes]


async def ask(url: str, token: str | None, path: str = "/api/v1/sessions", **options: Any) -> int:
    # A forwarding header makes us strangers although we come from the same user.
    headers = {"X-Forwarded-For": "203.0.113.5"} | ({"Authorization": f"Bearer {token}"} if token else {})
    async with httpx.AsyncClient(**options) as client:
        return (await client.get(url + path, headers=headers)).status_code


async def test_whether_a_token_opens_does_not_wait_for_slow_reads(address: str) -> None:
    with open_store(address) as store:
        receiver = Receiver(store)
        made = create_token(address, "laptop", "all")["token"]
        go_on = threading.Event()
        slow = [asyncio.create_task(store.read(lambda _: go_on.wait(30))) for _ in range(10)]
        await asyncio.sleep(0)  # each is handed in

        async with asyncio.timeout(10):
            found = await receiver.find_holder(made)
        waits = [not task.done() for task in slow]
        go_on.set()
        await asyncio.gather(*slow)
        receiver.close()

    assert found is not None
    assert all(waits)


async def test_a_token_opens_until_it_is_revoked_while_the_receiver_runs(address: str) -> None:
    with open_store(address) as store:
        server = await serve_http(create_app(store, token="shared"), "127.0.0.1", 0, explicit_port=True)
        made = create_token(address, "laptop", "all")["token"]

        answers = [await ask(server.url, token) for token in (made, "shared", made + "x", "xmc_", None)]
        revoke_token(address, "laptop")
        revoked = await ask(server.url, made)
        await server.stop()

    assert (answers, revoked) == ([200, 200, 401, 401, 401], 401)


async def test_an_upload_token_reads_nothing(address: str) -> None:
    with open_store(address) as store:
        made = create_token(address, "laptop", "upload")["token"]
        server = await serve_http(create_app(store, token="shared"), "127.0.0.1", 0, explicit_port=True)

        answers = [await ask(server.url, made, path) for path in ("/agents/sessions/s", "/api/v1/sessions", "/")]
        await server.stop()

    assert answers == [404, 403, 403]


async def test_a_read_token_reads_everything_and_changes_nothing(address: str) -> None:
    with open_store(address) as store:
        made = create_token(address, "anna", "read")["token"]
        server = await serve_http(create_app(store, token="shared"), "127.0.0.1", 0, explicit_port=True)
        async with httpx.AsyncClient(base_url=server.url, headers={"X-Forwarded-For": "203.0.113.5"}) as client:
            shared, reader = {"Authorization": "Bearer shared"}, {"Authorization": f"Bearer {made}"}
            await client.post("/agents/sessions", json={"id": "s"}, headers=shared)
            read = [
                await client.get(path, headers=reader) for path in ("/", "/api/v1/sessions/s", "/agents/sessions/s")
            ]
            refused = [
                await client.delete("/api/v1/sessions/s", headers=reader),
                await client.post("/agents/sessions", json={"id": "t"}, headers=reader),
            ]
            entered = await client.post("/enter", data={"token": made})
            client.cookies = entered.cookies
            page, forgotten = await client.get("/"), await client.post("/sessions/s/forget")
        await server.stop()

    assert [answer.status_code for answer in read] == [200, 200, 200]
    assert [(answer.status_code, answer.json()["error"]["kind"]) for answer in refused] == [(403, "read_only")] * 2
    assert (entered.status_code, page.status_code, forgotten.status_code) == (303, 200, 403)


def test_the_store_keeps_no_token(store_path: Path) -> None:
    made = create_token(store_path, "laptop", "all")["token"]

    assert all(made[4:20].encode() not in path.read_bytes() for path in store_path.parent.iterdir())
    assert made not in str(list_tokens(store_path))
    with Store(store_path) as store:
        (length,) = store.do(lambda database: database.execute("SELECT length(hash) FROM tokens").fetchone())
        assert length == 32


def test_tokens_are_listed_and_names_are_taken_once(address: str) -> None:
    create_token(address, "laptop", "upload")
    with pytest.raises(UsageError, match="already"):
        create_token(address, "laptop", "all")
    revoke_token(address, "laptop")
    with pytest.raises(UsageError, match="No active token"):
        revoke_token(address, "laptop")
    again = create_token(address, "laptop", "all")["token"]

    (listed,) = list_tokens(address)["tokens"]

    assert (listed["name"], listed["scope"], listed["revoked"], listed["last_used"]) == ("laptop", "all", None, None)
    with open_store(address) as store:
        holder = store.do(lambda database: tokens.holder(database, again))
        assert holder is not None
        assert (holder.name, holder.scope) == ("laptop", "all")


@pytest.mark.parametrize("name", ["", " x", "x\n", "x" * 101])
def test_a_name_that_is_none_is_refused(address: str, name: str) -> None:
    with pytest.raises(UsageError):
        create_token(address, name, "all")


async def test_a_token_of_its_own_is_enough_to_listen_beyond_loopback(address: str) -> None:
    create_token(address, "laptop", "all")
    with open_store(address) as store:
        server = await serve_http(create_app(store), "0.0.0.0", 0, explicit_port=True)
        await server.stop()


async def test_a_report_says_whose_token_it_came_with(store: Store, open_client: Any) -> None:
    made = store.do(lambda database: tokens.create(database, "laptop", "now"))
    async with open_client(store) as client:
        headers = {"Authorization": f"Bearer {made}"}
        await client.post("/agents/exporters/x1", json={"version": "1", "token": "forged"}, headers=headers)
        await client.post("/agents/exporters/x2", json={"version": "1", "token": "forged"})
        found = (await client.get("/api/v1/exporters")).json()["exporters"]

    assert {exporter["id"]: exporter["token"] for exporter in found} == {"x1": "laptop", "x2": None}


def make_certificate(certificate: Path, key: Path) -> None:
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-out", certificate, "-keyout", key],
        check=True, capture_output=True,
    )  # fmt: skip


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl to make a certificate")
async def test_with_a_certificate_it_serves_https_and_nothing_else(tmp_path: Path) -> None:
    files = [tmp_path / "cert.pem", tmp_path / "key.pem"]
    make_certificate(*files)
    trusting = ssl.create_default_context(cafile=str(files[0]))
    with Store(":memory:") as store:
        app = create_app(store, token="shared")
        server = await serve_http(app, "127.0.0.1", 0, explicit_port=True, certificate=Certificate(*files))

        answers = [await ask(server.url, token, verify=trusting) for token in ("shared", None)]
        with pytest.raises(httpx.TransportError):
            await ask(server.url.replace("https", "http"), "shared")
        with pytest.raises(httpx.ConnectError):
            await ask(server.url, "shared")
        await server.stop()

    assert server.url.startswith("https://")
    assert answers == [200, 401]


@pytest.mark.parametrize("content", [None, "no certificate"])
async def test_a_certificate_that_cannot_be_used_is_refused_with_a_hint(tmp_path: Path, content: str | None) -> None:
    files = [tmp_path / "cert.pem", tmp_path / "key.pem"]
    for file in files:
        if content is not None:
            file.write_text(content)

    with Store(":memory:") as store, pytest.raises(SettingsError) as raised:
        await serve_http(create_app(store), "127.0.0.1", 0, explicit_port=True, certificate=Certificate(*files))

    assert raised.value.hint


async def fill(client: httpx.AsyncClient, make_event: Make, make_body: Make, days: list[int]) -> None:
    for day in days:
        await client.post("/agents/sessions", json={"id": f"d{day}"})
        event = make_event("e", "x", timestamp=f"2026-11-{day:02}T10:00:00.000Z", data={"text": f"word{day} " * 2000})
        await client.post(f"/agents/sessions/d{day}/events", content=make_body(event))


async def ids(client: httpx.AsyncClient) -> list[str]:
    return [session["id"] for session in (await client.get("/api/v1/sessions")).json()["sessions"]]


async def test_what_is_too_old_is_forgotten_for_good(
    store: Store, open_client: Any, make_event: Make, make_body: Make
) -> None:
    clock = [datetime(2026, 11, 3, tzinfo=UTC)]
    async with open_client(store, clock=lambda: clock[0], retention=Retention(10, None)) as client:
        receiver = client._transport.app.state.receiver
        await fill(client, make_event, make_body, [1, 2])
        clock[0] = datetime(2026, 11, 16, tzinfo=UTC)
        await fill(client, make_event, make_body, [15])
        clock[0] = datetime(2026, 11, 18, tzinfo=UTC)
        await fill(client, make_event, make_body, [3])

        gone = await receiver.expire()

        assert gone == 2
        assert await ids(client) == ["d15", "d3"]  # d3 is old and came today
        answer = await client.post("/agents/sessions/d1/events", content=make_body(make_event("f")))
        assert (answer.status_code, answer.json()["error"]["kind"]) == (410, "expired_session")
        assert (await client.get("/api/v1/search?q=word1")).json()["results"][0]["session"] == "d15"
        assert (await client.post("/agents/sessions", json={"id": "d1", "restore": True})).status_code == 200


async def test_when_all_take_too_much_the_oldest_go(
    address: str, open_client: Any, make_event: Make, make_body: Make
) -> None:
    with open_store(address) as store:
        async with open_client(store, retention=Retention(None, 3_000_000)) as client:
            receiver = client._transport.app.state.receiver
            await fill(client, make_event, make_body, [1])
            kept = await receiver.expire()
            for number in range(8):
                await client.post("/agents/sessions", json={"id": f"s{number}"})
                text = f"many words {number} " * 40_000
                event = make_event("e", timestamp=f"2026-11-1{number}T10:00:00.000Z", data={"t": text})
                await client.post(f"/agents/sessions/s{number}/events", content=make_body(event))

            gone = await receiver.expire()

            assert kept == 0
            assert 2 <= gone <= 7
            assert await ids(client) == [f"s{number}" for number in reversed(range(gone - 1, 8))]
            assert await receiver.expire() == 0
