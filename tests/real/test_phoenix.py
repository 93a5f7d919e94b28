"""A real backend takes our traces: spans arrive, sessions group, sending them again stores nothing twice."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest

from tests.real.cli import wait_until
from tests.real.phoenix import Phoenix
from tests.real.station import REPOSITORY

pytestmark = pytest.mark.real

ARRIVAL_SECONDS_MAX = 30


@pytest.fixture(scope="module")
def phoenix(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Phoenix]:
    with Phoenix(tmp_path_factory.mktemp("phoenix"), _free_port(), _free_port()) as server:
        yield server


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _copilot_home(directory: Path) -> Path:
    """Make a directory of the CLI's with the session of the demo in it, as it was recorded."""
    home = directory / "copilot"
    session = home / "session-state" / "1b9a8f0e-0f4e-4f54-9d3b-4f1f2a6f5b11"
    session.mkdir(parents=True)
    (session / "events.jsonl").write_bytes(files("exporter.demo").joinpath("session.jsonl").read_bytes())
    return home


def _backfill(directory: Path, home: Path, endpoint: str) -> None:
    """Send history with a state of its own, so that nothing is known to have been sent."""
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "EXPORTER_"))},
        "EXPORTER_COPILOT_HOME": str(home),
        "EXPORTER_STATE_DIR": str(directory / "state"),
        "EXPORTER_OTEL__ENDPOINT": endpoint,
        "EXPORTER_OTEL__HISTORY_DAYS": "36500",
    }
    command = [sys.executable, "-m", "exporter", "backfill", "--all", "--sink", "otel"]
    done = subprocess.run(
        command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr


def test_a_session_becomes_traces_of_one_session(phoenix: Phoenix, tmp_path: Path) -> None:
    home = _copilot_home(tmp_path)
    _backfill(tmp_path / "once", home, phoenix.url)
    wait_until(lambda: len(phoenix.spans()) > 0, "spans arrive", ARRIVAL_SECONDS_MAX)
    wait_until(_Still(phoenix), "spans stop arriving", ARRIVAL_SECONDS_MAX)

    spans = phoenix.spans()
    by_id = {span.span_id: span for span in spans}
    roots = [span for span in spans if span.parent_id is None]
    assert len(roots) == 2  # one for each thing the person asked for
    assert {span.name.split()[0] for span in roots} == {"invoke_agent"}
    assert all(span.parent_id in by_id for span in spans if span.parent_id is not None)
    assert {span.trace_id for span in spans} == {root.trace_id for root in roots}
    told = [name for span in spans for name in span.events]
    assert told.count("github.copilot.system.notification") == 3
    [session] = phoenix.sessions()
    assert session["session_id"] == "1b9a8f0e-0f4e-4f54-9d3b-4f1f2a6f5b11"

    _backfill(tmp_path / "twice", home, phoenix.url)

    wait_until(_Still(phoenix), "spans stop arriving", ARRIVAL_SECONDS_MAX)
    assert {(span.trace_id, span.span_id) for span in phoenix.spans()} == {(one.trace_id, one.span_id) for one in spans}
    assert len(phoenix.spans()) == len(spans)


class _Still:
    """True once the number of spans has not changed between two looks a second apart."""

    def __init__(self, phoenix: Phoenix) -> None:
        self._phoenix = phoenix
        self._before = -1

    def __call__(self) -> bool:
        time.sleep(1.0)
        before, self._before = self._before, len(self._phoenix.spans())
        return before == self._before
