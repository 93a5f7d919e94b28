"""The page of the fleet: exporters by version, lag, errors and settings, and what each tenant uses."""

from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from exporter.missioncontrol.http.fleet_api import read_fleet
from exporter.missioncontrol.http.read_api import scope_of
from exporter.missioncontrol.pages.formats import address, local
from exporter.missioncontrol.pages.rendering import page
from exporter.missioncontrol.store.fleet import ALERTS

_SHOWN: Final = 200


async def fleet_page(request: Request) -> Response:
    """Show the fleet, the most urgent first; for the script only the list."""
    fleet = await read_fleet(request, _SHOWN)
    following = address(local("/fleet"), cursor=fleet["next"]) if fleet["next"] else None
    shows_exporters = scope_of(request) != "operator"
    return page(
        request,
        "fleet.html",
        "list",
        fleet=fleet,
        meanings=ALERTS,
        following=following,
        shows_exporters=shows_exporters,
    )
