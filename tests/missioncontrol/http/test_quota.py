"""Quotas of a tenant: too fast is asked to wait, too much is refused, and no other tenant notices."""

from collections.abc import Callable

import httpx
import pytest

from exporter.missioncontrol.http.quota import Quota, QuotaGate
from exporter.missioncontrol.http.responses import ApiError
from exporter.missioncontrol.store import tenants, tokens
from exporter.missioncontrol.store.port import Store
from tests.missioncontrol.conftest import DECLARED, Opener

pytestmark = pytest.mark.anyio
NOW = "2026-11-18T10:00:00.000Z"


async def send(client: httpx.AsyncClient, body: bytes, token: str | None = None) -> httpx.Response:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    await client.post("/agents/sessions", json={"id": "s"}, headers=headers)
    return await client.post("/agents/sessions/s/events", content=body, headers=headers)


def events(make_event: Callable[..., bytes], make_body: Callable[..., bytes], first: int, count: int) -> bytes:
    return make_body(*[make_event(f"e{n}", data={"text": "x" * 1000}) for n in range(first, first + count)])


async def test_who_is_too_fast_waits_and_no_other_tenant_does(
    store: Store, open_client: Opener, make_event: Callable[..., bytes], make_body: Callable[..., bytes]
) -> None:
    red = store.tenant(tenants.create(store, "red", NOW))
    token = red.do(lambda database: tokens.create(database, "anna", NOW, tenant="red"))
    async with open_client(store, quota=Quota(events_per_second=1)) as client:
        whole = await send(client, events(make_event, make_body, 0, 50))  # more than may come at once, taken whole
        refused = await send(client, events(make_event, make_body, 50, 1))
        other = await send(client, events(make_event, make_body, 0, 1), token)
        metrics = (await client.get("/metrics")).text

    assert (whole.json()["accepted"], other.json()["accepted"]) == (50, 1)
    assert (refused.status_code, refused.json()["error"]["kind"]) == (429, "too_many_events")
    assert 1 <= int(refused.headers["Retry-After"]) <= 60
    assert "exporter_receiver_uploads_over_quota_total 1" in metrics


async def test_who_keeps_too_much_is_refused_until_something_is_deleted(
    store: Store, open_client: Opener, make_event: Callable[..., bytes], make_body: Callable[..., bytes]
) -> None:
    used = store.read_now(lambda database: database.used_bytes())
    async with open_client(store, quota=Quota(bytes=used + 50_000), headers=DECLARED) as client:
        first = await send(client, events(make_event, make_body, 0, 100))
        refused = await send(client, events(make_event, make_body, 100, 1))
        read = await client.get("/api/v1/sessions/s")

    assert (first.json()["accepted"], read.json()["events"]) == (100, 100)
    assert (refused.status_code, refused.json()["error"]["kind"]) == (403, "quota_exceeded")
    async with open_client(store, quota=Quota(bytes=used + 50_000)) as client:
        assert (await client.delete("/api/v1/sessions/s")).status_code == 204
        await client.post("/agents/sessions", json={"id": "t"})
        again = await client.post("/agents/sessions/t/events", content=events(make_event, make_body, 0, 1))
    assert again.json()["accepted"] == 1


async def test_the_rate_is_kept_over_time() -> None:
    now = [0.0]
    gate = QuotaGate(Quota(events_per_second=100), lambda: now[0])
    taken = 0
    for tick in range(1000):  # a hundred seconds, and as much as possible in each tenth
        now[0] = tick / 10
        try:
            await gate.admit(None)  # type: ignore[arg-type]  # no quota of bytes, so the store is not asked
        except ApiError:
            continue
        gate.spend(50, 0)
        taken += 50

    assert 100 * 99.9 <= taken <= 100 * (99.9 + 10) + 50
