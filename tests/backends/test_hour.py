"""A session of the past and one of now are found at once, later and after a restart, in every store that is there.

`make soak PART=hour` waits an hour, in which stores hand over what they took: their clocks cannot be shifted, as Go
asks the kernel itself. Without BACKENDS_WAIT_MINUTES later is at once.
"""

import os
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest

from tests.backends import install, test_logs, test_metrics, test_traces
from tests.backends.month import Host, counted, month, now
from tests.backends.servers import MAKERS, Server
from tests.real.cli import wait_until

pytestmark = pytest.mark.real

_WAIT_SECONDS: Final = float(os.environ.get("BACKENDS_WAIT_MINUTES", "0")) * 60
_FOUND_SECONDS_MAX: Final = 60
_SESSIONS: Final = 4
_PRESENT: Final = [name for name in MAKERS if install.present(name) is not None]


def _records_missing(server: Server, host: Host) -> list[str]:
    return [
        session
        for session in sorted({session for session, _ in host.events()})
        if len(test_logs.of_session(server, session)) != counted(host, session=session).events
    ]


def _traces_missing(server: Server, host: Host) -> list[str]:
    return [
        session
        for session in sorted({session for session, _ in host.events()})
        if len(test_traces.of_session(server, session)) != counted(host, session=session).traces
    ]


def _counts_wrong(server: Server, host: Host) -> list[str]:
    return [str(panel) for panel in test_metrics.wrong(server, counted(host))]


_SIGNAL: Final[Mapping[str, str]] = {"loki": "logs", "jaeger": "traces"}
_MISSING: Final[Mapping[str, Callable[[Server, Host], list[str]]]] = {
    "logs": _records_missing,
    "traces": _traces_missing,
    "metrics": _counts_wrong,
}


def _all_is_found(stores: list[tuple[Server, Host, str]], when: str) -> None:
    for server, host, signal in stores:
        missing: list[str] = []

        def found(server: Server = server, host: Host = host, signal: str = signal, last: list[str] = missing) -> bool:
            last[:] = _MISSING[signal](server, host)
            return not last

        try:
            wait_until(found, f"all of it in {server.name} {when}", _FOUND_SECONDS_MAX)
        except Exception as error:
            raise AssertionError((server.name, when, missing)) from error


@pytest.mark.skipif(not _PRESENT, reason="no store is here: make backends")
@pytest.mark.timeout(_WAIT_SECONDS + 900)
def test_the_past_and_the_present_are_found_at_once_later_and_after_a_restart(tmp_path: Path) -> None:
    stores: list[tuple[Server, Host, str]] = []
    with ExitStack() as until_the_end:
        for name in _PRESENT:
            server = until_the_end.enter_context(MAKERS[name](tmp_path / name))
            signal = _SIGNAL.get(name, "metrics")
            settings = {"EXPORTER_OTEL__SIGNALS": f'["{signal}"]', "EXPORTER_OTEL__METRICS_REPEAT_SECONDS": "1"}
            host = month(tmp_path / f"host-of-{name}", _SESSIONS, until=now())
            host.backfill(server.endpoint, **settings)
            until_the_end.enter_context(host.running(server.endpoint, **settings))
            stores.append((server, host, signal))
        _all_is_found(stores, "at once, of the past")
        for _, host, _ in stores:
            host.play("now")
        _all_is_found(stores, "at once, of now")

        time.sleep(_WAIT_SECONDS)
        _all_is_found(stores, f"{_WAIT_SECONDS / 60:.0f} minutes later")

        for server, _, _ in stores:
            server.restart()
        _all_is_found(stores, "after a restart")
