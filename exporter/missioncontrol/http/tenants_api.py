"""The API for operators, who manage tenants and see nothing of what is in them."""

import asyncio
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from exporter.core.events.envelope import REFUSALS
from exporter.missioncontrol.http.audited import who_asks
from exporter.missioncontrol.http.responses import ApiError, api_errors, json_answer
from exporter.missioncontrol.receiver import Receiver
from exporter.missioncontrol.receivers import Receivers
from exporter.missioncontrol.store import queries, tenants
from exporter.missioncontrol.store.port import Database

_BODY_BYTES_MAX: Final = 4096


class _Named(msgspec.Struct):
    name: str


async def listed(request: Request) -> Response:
    """List the tenants with what each holds."""
    receivers: Receivers = request.app.state.receivers
    found = []
    with api_errors():
        for tenant in await receivers.default.store.read(tenants.listed):
            if (receiver := await receivers.find(tenant["name"])) is not None:
                found.append({**tenant, **await receiver.read(_figures)})
    return json_answer({"tenants": found, "next": None})


def _figures(database: Database) -> dict[str, Any]:
    totals = queries.totals(database)
    exporters = len(queries.exporters(database))
    counted = {"sessions": sum(totals.sessions.values()), "events": totals.events}
    return {**counted, "bytes": database.used_bytes(), "exporters": exporters}


async def create(request: Request) -> Response:
    """Make a tenant; its first token is made where the store is, or by who may do that there."""
    default: Receiver = request.app.state.receivers.default
    try:
        name = msgspec.json.decode(await default.intake.read_body(request, _BODY_BYTES_MAX), type=_Named).name
        with api_errors():
            who = who_asks(request) if default.audits else None
            await asyncio.to_thread(tenants.create, default.store, name, default.now(), who)
    except REFUSALS as error:
        raise ApiError(400, "bad_body", f"The body cannot be read: {error}.", hint='Send {"name": "…"}.') from error
    except tenants.TenantError as error:
        raise ApiError(409, "bad_tenant", str(error), hint="GET /api/v1/tenants lists them.") from error
    return json_answer({"name": name})


async def remove(request: Request) -> Response:
    """Delete all sessions of a tenant for good, and the tenant."""
    receivers: Receivers = request.app.state.receivers
    name = request.path_params["name"]
    with api_errors():
        if not await receivers.remove(name, who_asks(request) if receivers.default.audits else None):
            hint = "GET /api/v1/tenants lists them. The tenant default stays."
            raise ApiError(404, "unknown_tenant", f"There is no tenant {name} to remove.", hint=hint)
    return Response(status_code=204)


ROUTES: Final = (
    Route("/api/v1/tenants", listed, methods=["GET"]),
    Route("/api/v1/tenants", create, methods=["POST"]),
    Route("/api/v1/tenants/{name}", remove, methods=["DELETE"]),
)
