"""The Collector in front of a store: what the store takes arrives."""

from pathlib import Path
from typing import Final

import pytest

from tests.backends.month import counted, month, now
from tests.backends.servers import Server, collector, needs, prometheus
from tests.backends.test_metrics import is_right

pytestmark = [pytest.mark.real, needs("collector"), needs("prometheus")]

_METRICS: Final = {"EXPORTER_OTEL__SIGNALS": '["metrics"]', "EXPORTER_OTEL__METRICS_REPEAT_SECONDS": "1"}
_FAILED: Final = "Exporting failed"


def _said(server: Server) -> str:
    return (server.directory / "log").read_text(encoding="utf-8", errors="replace")


@pytest.mark.timeout(400)
def test_a_month_and_a_live_session_arrive_through_it(tmp_path: Path) -> None:
    host = month(tmp_path / "host", 4, until=now())
    with prometheus(tmp_path / "store") as store, collector(tmp_path / "between", prometheus=store.endpoint) as between:
        told = host.backfill(between.endpoint, **_METRICS)
        with host.running(between.endpoint, **_METRICS):
            host.play("now")
            is_right(store, counted(host))

        assert "can be asked" in told
        assert _FAILED not in _said(between)
