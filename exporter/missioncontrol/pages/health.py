"""The page on redaction and health: what was masked, what is held back, who uploads, and what the store holds."""

from collections import Counter
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from exporter.missioncontrol.ingest.write_jobs import heard_since
from exporter.missioncontrol.pages.rendering import page
from exporter.missioncontrol.receiver import receiver_of
from exporter.missioncontrol.store import queries
from exporter.missioncontrol.store.amounts import amount
from exporter.missioncontrol.store.port import Database
from exporter.missioncontrol.store.redactions import redactions

_DAYS: Final = 14
_RULES: Final = 40
_ROWS_MAX: Final = 2000
_SHADES: Final = 5
_REASONS_MAX: Final = 20
_SINKS_MAX: Final = 20


async def health_page(request: Request) -> Response:
    """Show the figures; for the script only what changes."""
    receiver = receiver_of(request)
    since = heard_since(receiver.now())

    def read(database: Database) -> tuple[Any, ...]:
        masked, _ = redactions(database, ["rule", "day"], limit=_ROWS_MAX, offset=0)
        return masked, queries.exporters(database, since), queries.totals(database), database.used_bytes()

    masked, reports, totals, used = await receiver.read(read)
    return page(
        request,
        "health.html",
        "list",
        masked=_masked(masked),
        exporters=[{**report, "sinks": _sinks(report.get("sinks"))} for report in reports],
        quarantined=sum(amount(report.get("quarantined")) or 0 for report in reports),
        reasons=[
            (reason, count, report.get("host") or report["id"])
            for report in reports
            if isinstance(told := report.get("quarantine"), dict)
            for reason, count in list(told.items())[:_REASONS_MAX]
        ],
        totals=totals,
        used=used,
        retention=receiver.retention,
        counters=receiver.counters,
    )


def _masked(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the days, and for each rule its sum and for each day how many, with a shade."""
    days = sorted({row["day"] for row in rows}, reverse=True)[:_DAYS]
    cells = {(row["rule"], row["day"]): row["count"] for row in rows}
    most = max([1, *cells.values()])
    sums: Counter[str] = Counter()
    for row in rows:
        sums[row["rule"]] += row["count"]
    rules = []
    for rule in sorted(sums, key=lambda rule: (-sums[rule], rule))[:_RULES]:
        counts = [cells.get((rule, day), 0) for day in days]
        rules.append((rule, sums[rule], [(count, -(-count * _SHADES // most)) for count in counts]))
    return {"days": days, "rules": rules}


def _sinks(told: object) -> list[dict[str, Any]]:
    return [sink for sink in told if isinstance(sink, dict)][:_SINKS_MAX] if isinstance(told, list) else []
