"""Helpers for a request that can be much work."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from config.settings import Settings
    from exporter.daemon.backfill_helpers import Helpers
    from exporter.daemon.running import Redactors


def helpers_for(settings: "Settings", request: Mapping[str, Any], redaction: "Redactors") -> "Helpers | None":
    """Return processes that take part in a backfill of telemetry, None for other requests and on one core.

    Nothing may have been opened yet, and no thread started.
    """
    if request.get("do") != "backfill" or request.get("dry_run") or not settings.otel:
        return None
    from exporter.daemon.backfill_helpers import Helpers, helpers_possible
    from exporter.wiring.assembly import join

    count = helpers_possible()
    if not count:
        return None
    return Helpers(count, lambda: join(settings, lambda _: None, redaction, local=False, session_ids=()))
