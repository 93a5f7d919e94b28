"""A session that two versions of the CLI wrote: what each wrote has its version, and no series is overwritten."""

import os
import pwd
import sys
import time
from collections.abc import Iterator

import pytest

from exporter.errors import Exit
from tests.daemon.station import Station
from tests.daemon.telemetry import attributes_of, settings_for
from tests.otel.default_stores import DefaultStores
from tests.otel.many import line
from tests.otel.prometheus import samples
from tests.otel.receiver import Receiver

pytestmark = pytest.mark.anyio


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as opened:
        yield opened


def _work(name: str, at: float) -> list[bytes]:
    return [
        line(f"{name}-0", "user.message", {"delivery": "idle", "content": "Hi."}, at),
        line(f"{name}-1", "tool.execution_start", {"toolCallId": name, "toolName": "view"}, at),
        line(f"{name}-2", "tool.execution_complete", {"toolCallId": name, "success": True}, at),
    ]


async def _told(station: Station, receiver: Receiver, **changes: object) -> None:
    now = time.time() - 5
    session = station.session()
    session.append(
        line("start", "session.start", {"copilotVersion": "1.0.48"}, now),
        *_work("a", now),
        line("resume", "session.resume", {"copilotVersion": "1.0.102"}, now + 1),
        *_work("b", now + 1),
        line("end", "session.shutdown", {}, now + 2),
    )
    exporter = station.exporter(settings_for(station, receiver, **changes))
    assert await exporter.idle() == Exit.DONE


async def test_spans_and_records_are_of_the_version_that_wrote_them(station: Station, receiver: Receiver) -> None:
    await _told(station, receiver)

    found: dict[str, set[str]] = {}
    for request in receiver.requests:
        decoded = request.decoded()
        for part in getattr(decoded, "resource_logs", ()) or getattr(decoded, "resource_spans", ()):
            version = attributes_of(part.resource)["service.version"]
            for scope in getattr(part, "scope_logs", ()) or getattr(part, "scope_spans", ()):
                for one in (*getattr(scope, "log_records", ()), *getattr(scope, "spans", ())):
                    facts = attributes_of(one)
                    found.setdefault(version, set()).add(facts.get("event.id") or facts["github.copilot.event.id"])
    assert found == {
        "1.0.48": {"start", "a-0", "a-1", "a-2"},
        "1.0.102": {"resume", "b-0", "b-1", "b-2", "end"},
    }


async def test_series_of_two_versions_have_instances_of_their_own(station: Station, receiver: Receiver) -> None:
    stores = DefaultStores(receiver)

    await _told(station, receiver, signals=("metrics",))

    resources = {
        (attributes_of(one)["service.version"], attributes_of(one)["service.instance.id"].partition("@")[2])
        for one in receiver.resources("metrics")
    }
    assert resources == {("1.0.48", "1.0.48"), ("1.0.102", "1.0.102")}
    calls = samples(receiver.requests, "github.copilot.tool.call.count")
    assert sorted(some[-1][1] for some in calls.values()) == [1, 1]
    assert not any("service.version" in label for series in calls for label in series)
    assert stores.refused == []


@pytest.mark.parametrize(
    ("changes", "host"),
    [({}, "laptop"), ({"content": "none"}, None), ({"host_name": False}, None)],
)
async def test_the_name_of_the_machine_is_sent_unless_it_is_not_wanted(
    station: Station, receiver: Receiver, changes: dict[str, object], host: str | None
) -> None:
    await _told(station, receiver, **changes)

    for signal in ("traces", "metrics", "logs"):
        assert {attributes_of(one).get("host.name") for one in receiver.resources(signal)} == {host}


@pytest.mark.skipif(sys.platform == "win32", reason="files have no owner")
@pytest.mark.parametrize(
    ("changes", "is_told"), [({}, True), ({"content": "none"}, False), ({"user_name": False}, False)]
)
async def test_the_owner_of_a_session_is_told_unless_it_is_not_wanted(
    station: Station, receiver: Receiver, changes: dict[str, object], is_told: bool
) -> None:
    await _told(station, receiver, **changes)

    name = pwd.getpwuid(os.getuid()).pw_name if is_told else None
    for signal in ("traces", "metrics", "logs"):
        assert {attributes_of(one).get("user.name") for one in receiver.resources(signal)} == {name}


@pytest.mark.skipif(sys.platform == "win32" or os.getuid() != 0, reason="only root can give a file to somebody")
async def test_sessions_of_two_users_are_told_apart_and_their_series_do_not_meet(
    station: Station, receiver: Receiver
) -> None:
    stores, now = DefaultStores(receiver), time.time() - 5
    for name, uid in (("of-root", 0), ("of-other", 12_345)):
        session = station.session(name)
        session.append(line(f"{name}-start", "session.start", {"copilotVersion": "1.0.48"}, now), *_work(name, now))
        os.chown(session.path, uid, uid)

    assert await station.exporter(settings_for(station, receiver)).idle() == Exit.DONE

    whose = {
        (attributes_of(one)["user.name"], attributes_of(one)["service.instance.id"].partition("+")[2])
        for one in receiver.resources("metrics")
    }
    assert whose == {("root", "root@1.0.48"), ("12345", "12345@1.0.48")}
    calls = samples(receiver.requests, "github.copilot.tool.call.count")
    assert sorted(some[-1][1] for some in calls.values()) == [1, 1]
    assert stores.refused == []
