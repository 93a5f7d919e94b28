"""The API of the fleet: exporters with their alerts for admins and auditors, figures of each tenant for operators."""

from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from exporter.missioncontrol.http.read_api import limit_of, number_cursor, scope_of
from exporter.missioncontrol.http.responses import tagged_answer
from exporter.missioncontrol.receiver import Receiver, receiver_of
from exporter.missioncontrol.receivers import Receivers
from exporter.missioncontrol.store import fleet, queries
from exporter.missioncontrol.store.port import Database

_DEFAULT, _MAX = 200, 1000
_NEARLY_FULL: Final = 0.9


async def told(request: Request) -> Response:
    """Give the fleet as far as the token may see it."""
    return tagged_answer(request, msgspec.json.encode(await read_fleet(request, limit_of(request, _DEFAULT, _MAX))))


async def read_fleet(request: Request, limit: int) -> dict[str, Any]:
    """Return a page of the exporters, what is counted of all of them, and the figures of tenants.

    An auditor is told no host and no words of an error; an operator is told of every tenant, and of no exporter.
    """
    receiver, scope, first = receiver_of(request), scope_of(request), number_cursor(request) or 0
    if scope == "operator":
        receivers: Receivers = request.app.state.receivers
        tenants = [await receivers.find(name) for name in await receivers.names()]
        figures = [(await _read(one))[0] for one in tenants if one is not None]
        return {"exporters": [], "versions": {}, "alerts": {}, "tenants": figures, "next": None}
    figures_here, exporters = await _read(receiver)
    shown, more = exporters[first : first + limit], len(exporters) > first + limit
    if scope == "auditor":
        shown = [{**one, "host": None, "error": None} for one in shown]
    following = str(first + limit) if more else None
    counted = {name: figures_here[name] for name in ("versions", "alerts")}
    return {"exporters": shown, **counted, "tenants": [figures_here], "next": following}


async def _read(receiver: Receiver) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return what a tenant has and may have, and its exporters.

    Each receiver refuses uploads for itself, so `refused` is of this one.
    """
    now = receiver.now()

    def read(database: Database) -> tuple[queries.StoreTotals, int, list[dict[str, Any]]]:
        return queries.totals(database), database.used_bytes(), fleet.fleet(database, now)

    totals, used, exporters = await receiver.read(read)
    quota, refused = receiver.quota.quota, receiver.quota.refused
    is_full = quota.bytes is not None and used >= quota.bytes * _NEARLY_FULL
    figures = {
        "name": receiver.tenant,
        "sessions": sum(totals.sessions.values()),
        "events": totals.events,
        "bytes": used,
        "quota": {"events_per_second": quota.events_per_second, "bytes": quota.bytes},
        "refused": refused,
        "exporters": len(exporters),
        **fleet.counted(exporters),
        "nearly_full": is_full,
    }
    return figures, exporters


ROUTES: Final = (Route("/api/v1/fleet", told, methods=["GET"]),)
