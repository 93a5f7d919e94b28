"""The fleet: alerts of exporters, settings that differ and are never told, figures of tenants, and who may see what."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from config.drift import comparable
from config.settings import Limits, MissionControl, Settings
from exporter.daemon.sealed_settings import SealedSettings
from exporter.missioncontrol.http.quota import Quota
from exporter.missioncontrol.store import tenants, tokens
from exporter.missioncontrol.store.port import Store
from tests.missioncontrol.conftest import DECLARED, Opener

pytestmark = pytest.mark.anyio
NOW = "2026-11-18T10:00:00.000Z"
SECRET = "s3cr3t-v4lu3"


class Team:
    """A receiver with a clock that a test turns, and a token of each kind."""

    def __init__(self, store: Store, client: httpx.AsyncClient) -> None:
        self.client, self.store = client, store
        self.salts: dict[str, str] = {}
        self.tokens = {
            scope: store.do(lambda database, scope=scope: tokens.create(database, scope, NOW, scope=scope))  # type: ignore[misc]
            for scope in ("read", "auditor", "operator")
        }

    async def report(self, id: str, values: dict[str, str] | None = None, **report: Any) -> dict[str, Any]:
        """Report as an exporter of this name does: its settings are told in full when they are asked for."""
        salt = self.salts.get(id)
        told = SealedSettings(values or {}).told(salt, in_full=True) if salt else None
        answer = await self.client.post(f"/agents/exporters/{id}", json={"version": "1.0", "settings": told, **report})
        assert answer.status_code == 200
        settings: dict[str, Any] = answer.json()["settings"]
        self.salts[id] = settings["salt"]
        return settings

    async def fleet(self, who: str = "", query: str = "") -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {self.tokens[who]}"} if who else {}
        answer = await self.client.get(f"/api/v1/fleet{query}", headers=headers)
        assert answer.status_code == 200
        found: dict[str, Any] = answer.json()
        return found


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 11, 18, 10, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def team(store: Store, open_client: Opener, clock: Clock) -> AsyncIterator[Team]:
    headers = {**DECLARED, "Authorization": "Bearer own"}
    quota = Quota(events_per_second=500, bytes=10)
    async with open_client(store, headers=headers, token="own", clock=clock, quota=quota) as client:
        yield Team(store, client)


def sink(**told: Any) -> list[dict[str, Any]]:
    return [{"name": "otel", "lag_seconds": 0, "lag_events": 0, "last_error": None, **told}]


async def test_each_alert_is_raised_by_what_it_says_and_by_nothing_less(team: Team, clock: Clock) -> None:
    await team.report("silent")
    clock.now += timedelta(seconds=121)
    await team.report("well", sinks=sink(lag_seconds=299, lag_events=3))
    await team.report("failing", sinks=sink(last_error="answered 503"))
    await team.report("behind", sinks=sink(lag_seconds=300, lag_events=9))
    await team.report("quarantined", quarantined=2)
    await team.report("outdated", version="0.9.12")
    await team.report("copied", installation="0" * 16)
    clock.now += timedelta(seconds=1)
    await team.report("copied", installation="1" * 16)
    await team.report("copied", installation="0" * 16)

    fleet = await team.fleet()

    alerts = {one["id"]: one["alerts"] for one in fleet["exporters"]}
    assert alerts.pop("well") == []
    assert alerts == {name: [name] for name in alerts}
    assert list(fleet["alerts"]) == ["silent", "failing", "behind", "copied", "quarantined", "outdated"]
    assert (fleet["versions"], fleet["exporters"][0]["id"]) == ({"1.0": 6, "0.9.12": 1}, "silent")
    behind = next(one for one in fleet["exporters"] if one["id"] == "behind")
    assert (behind["lag_seconds"], behind["lag_events"], behind["error"]) == (300, 9, None)
    clock.now += timedelta(days=31)
    assert (await team.fleet())["exporters"] == []


def settings(**changed: Any) -> dict[str, str]:
    sinks = {"default": MissionControl(url=f"https://me:{SECRET}@mc.example.com/agents", token=SECRET)}
    return comparable(Settings(mission_control=sinks, host_name="laptop", **changed))


async def test_settings_that_differ_are_named_and_no_value_reaches_the_receiver(team: Team) -> None:
    values = {"a": settings(), "b": settings(), "c": settings(limits=Limits(keep_days=7), log_level="debug")}
    for _ in range(2):
        asked = [await team.report(id, one) for id, one in values.items()]
    again = await team.report("a", values["a"], version="1.0")

    fleet = await team.fleet()

    differing = {one["id"]: one["differs"] for one in fleet["exporters"]}
    assert differing == {"a": [], "b": [], "c": ["limits.keep_days", "log_level"]}
    assert [one["wanted"] for one in (*asked, again)] == [False] * 4
    assert len({one["settings"] for one in fleet["exporters"]}) == 2
    assert "mission_control.default.token" not in values["c"]
    assert SECRET not in "".join(values["c"].values())
    assert "host_name" not in values["c"]
    known = "".join(
        text for (text,) in team.store.do(lambda database: database.execute("SELECT report FROM exporters").fetchall())
    )
    assert ("debug" in known, "limits.keep_days" in known) == (False, True)
    shown = (await team.client.get("/api/v1/exporters")).text
    assert "limits.keep_days" not in shown


async def test_a_hash_alone_is_enough_while_the_settings_are_known_and_nonsense_is_not_kept(team: Team) -> None:
    await team.report("a")
    full = SealedSettings(settings()).told(team.salts["a"], in_full=True)
    short = {"hash": full["hash"]}

    async def tell(told: Any) -> bool:
        answer = await team.client.post("/agents/exporters/a", json={"version": "1.0", "settings": told})
        return bool(answer.json()["settings"]["wanted"])

    wanted = [await tell(told) for told in (short, full, short, {"hash": "0" * 16}, full)]
    absurd: list[Any] = [{**full, "keys": {"a": "plain"}}, {**full, "hash": 7}, [], "x", None]
    nonsense = [await tell(one) for one in absurd]

    assert wanted == [True, False, False, True, False]
    assert nonsense == [False, True, True, True, True]  # of the first the hash is known
    assert (await team.fleet())["exporters"][0]["settings"] is None


async def test_two_tenants_get_salts_of_their_own(team: Team, store: Store) -> None:
    red = store.tenant(tenants.create(store, "red", NOW))
    token = red.do(lambda database: tokens.create(database, "anna", NOW, tenant="red"))
    ours = await team.report("a", settings())
    team.client.headers["Authorization"] = f"Bearer {token}"
    theirs = await team.report("a", settings())

    assert ours["salt"] != theirs["salt"]
    assert SealedSettings(settings()).told(ours["salt"], in_full=False) != SealedSettings(settings()).told(
        theirs["salt"], in_full=False
    )


async def test_an_auditor_sees_no_host_and_no_words_and_an_operator_every_tenant_and_no_exporter(
    team: Team, store: Store
) -> None:
    tenants.create(store, "red", NOW)
    await team.report("a", host="wombat", sinks=sink(last_error="quokka failed"))

    full, auditor, operator = await team.fleet(), await team.fleet("auditor"), await team.fleet("operator")

    assert (full["exporters"][0]["host"], full["exporters"][0]["error"]) == ("wombat", "otel: quokka failed")
    assert (auditor["exporters"][0]["host"], auditor["exporters"][0]["error"]) == (None, None)
    assert auditor["exporters"][0]["alerts"] == ["failing"]
    assert [one["name"] for one in auditor["tenants"]] == ["default"]
    assert (operator["exporters"], [one["name"] for one in operator["tenants"]]) == ([], ["default", "red"])
    assert [one["alerts"] for one in operator["tenants"]] == [{"failing": 1}, {}]
    own = operator["tenants"][0]
    assert own["quota"] == {"events_per_second": 500, "bytes": 10}
    assert own["nearly_full"] == (own["bytes"] >= 9)
    pages = {}
    for who in team.tokens:
        page = await team.client.get("/fleet", headers={"Authorization": f"Bearer {team.tokens[who]}"})
        pages[who] = (page.status_code, "wombat" in page.text, "quokka" in page.text)
    assert pages == {"read": (403, False, False), "auditor": (200, False, False), "operator": (200, False, False)}
    own_page = (await team.client.get("/fleet")).text
    assert ("wombat" in own_page, "quokka failed" in own_page) == (True, True)


async def test_a_page_of_many_exporters_goes_on_with_the_next(team: Team) -> None:
    for number in range(5):
        await team.report(f"e{number}")

    first = await team.fleet(query="?limit=2")
    second = await team.fleet(query=f"?limit=2&cursor={first['next']}")
    last = await team.fleet(query=f"?limit=2&cursor={second['next']}")

    found = [one["id"] for page in (first, second, last) for one in page["exporters"]]
    assert (found, last["next"]) == ([f"e{number}" for number in range(5)], None)
    assert first["versions"] == last["versions"] == {"1.0": 5}


async def test_a_report_that_was_kept_before_settings_were_told_does_no_harm(team: Team) -> None:
    reports = [
        '{"settings": "x", "version": 7, "host": {"a": 1}, "sinks": [1, {"lag_seconds": "x"}]}',
        '{"settings": {}}',
    ]
    rows = [(f"old{number}", report, NOW) for number, report in enumerate(reports)]
    team.store.do(lambda database: database.insert("exporters", "id, report, reported_at", rows))

    found = (await team.fleet())["exporters"]
    pages = [(await team.client.get(path)).status_code for path in ("/fleet", "/health", "/api/v1/exporters")]

    assert [(one["id"], one["settings"], one["alerts"]) for one in found] == [("old0", None, []), ("old1", None, [])]
    assert pages == [200] * 3
