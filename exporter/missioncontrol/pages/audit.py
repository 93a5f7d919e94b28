"""The page of the audit log: who read, searched, exported, shared or deleted what."""

from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from exporter.missioncontrol.http.read_api import read_audit, sees_figures_only
from exporter.missioncontrol.pages.formats import address, local
from exporter.missioncontrol.pages.rendering import page
from exporter.missioncontrol.receiver import receiver_of

_SHOWN: Final = 200


async def audit_page(request: Request) -> Response:
    """Show the entries, the newest first; for the script only the list."""
    entries, cursor = await read_audit(request, _SHOWN)
    session = request.query_params.get("session") or None
    return page(
        request,
        "audit.html",
        "list",
        entries=entries,
        session=session,
        is_kept=receiver_of(request).audits,
        links=not sees_figures_only(request),
        following=address(local("/audit"), session=session, cursor=cursor) if cursor else None,
    )
