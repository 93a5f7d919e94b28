"""What people search in Jaeger, in a real one, compared with what is counted in the files of the sessions."""

import json
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.backends.month import Host, counted, month, now
from tests.backends.servers import Server, jaeger, needs
from tests.real.cli import wait_until
from tests.real.station import REPOSITORY

pytestmark = [pytest.mark.real, needs("jaeger")]

SESSIONS: Final = 24
ARRIVAL_SECONDS_MAX: Final = 90
_TRACES: Final = {"EXPORTER_OTEL__SIGNALS": '["traces"]'}


def found(server: Server, days: int = 30, **asked: str) -> list[dict[str, Any]]:
    """The traces that a search finds in the last days."""
    ends = now() + timedelta(minutes=5)
    span = {"start": int((ends - timedelta(days=days)).timestamp() * 1e6), "end": int(ends.timestamp() * 1e6)}
    answer = server.get("/api/traces", service="github-copilot", limit=1500, **span, **asked)
    return list(answer["data"])


def of_session(server: Server, session: str) -> list[dict[str, Any]]:
    """The traces of a session."""
    return found(server, tags=json.dumps({"gen_ai.conversation.id": session}))


def holds(server: Server, host: Host) -> None:
    """Wait until there is a trace for each interaction of the sessions."""
    expected = counted(host).traces
    wait_until(lambda: len(found(server)) == expected, f"{expected} traces in Jaeger", ARRIVAL_SECONDS_MAX)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Host:
    """The sessions of a month."""
    return month(tmp_path_factory.mktemp("month"), SESSIONS, until=now())


@pytest.fixture(scope="module")
def store(told: Host, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A store that the month was delivered to."""
    with jaeger(tmp_path_factory.mktemp("jaeger") / "store") as server:
        told.backfill(server.endpoint, **_TRACES)
        yield server


def test_every_trace_is_found_before_and_after_a_restart_and_once_after_a_resend(store: Server, told: Host) -> None:
    holds(store, told)
    spans = sorted(span["spanID"] for trace in found(store) for span in trace["spans"])

    store.restart()
    holds(store, told)
    told.forget()
    told.backfill(store.endpoint, **_TRACES)
    holds(store, told)

    assert sorted({span["spanID"] for trace in found(store) for span in trace["spans"]}) == sorted(set(spans))


def test_failures_are_found_by_the_tags_that_the_documents_name(store: Server, told: Host) -> None:
    holds(store, told)

    failed = found(store, tags='{"error":"true"}')

    assert len(failed) >= SESSIONS


def test_a_session_is_found_by_its_id(store: Server, told: Host) -> None:
    holds(store, told)
    session, _ = next(told.events())

    assert len(of_session(store, session)) == counted(told, session=session).traces


def test_every_link_of_the_page_finds_the_trace_that_it_stands_in(store: Server, told: Host) -> None:
    holds(store, told)
    patterns = json.loads((REPOSITORY / "deploy/jaeger/ui.json").read_text(encoding="utf-8"))["linkPatterns"]
    tags = {tag["key"]: tag["value"] for trace in found(store) for span in trace["spans"] for tag in span["tags"]}

    for pattern in patterns:
        url = re.sub(r"#{([^}]+)}", lambda named: str(tags[named[1]]), pattern["url"])
        asked = {name: value for name, (value,) in parse_qs(urlsplit(url).query).items()}
        searched: dict[str, Any] = {name: asked[name] for name in ("operation", "tags") if name in asked}
        assert searched
        assert found(store, **searched), url


def test_a_live_session_and_an_outage(tmp_path: Path) -> None:
    host = Host(tmp_path / "live")
    with jaeger(tmp_path / "store") as server, host.running(server.endpoint, **_TRACES):
        host.play("first")
        wait_until(lambda: len(found(server)) > 1, "the first session", ARRIVAL_SECONDS_MAX)
        server.stop()
        host.play("meanwhile")
        server.start()

        wait_until(lambda: len(found(server)) > 3, "the second session", ARRIVAL_SECONDS_MAX)
