"""The page of share links: what each shows, until when, and how often it was opened."""

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from exporter.missioncontrol.http.read_api import scope_of
from exporter.missioncontrol.http.shares_api import end_share, read_shares
from exporter.missioncontrol.pages.formats import local
from exporter.missioncontrol.pages.rendering import page
from exporter.missioncontrol.receiver import receiver_of


async def shares_page(request: Request) -> Response:
    """Show the links, the newest first; for the script only the list."""
    found, now = await read_shares(request), receiver_of(request).now()
    return page(request, "shares.html", "list", **found, now=now, may_revoke=scope_of(request) == "all")


async def revoke(request: Request) -> Response:
    """Make a link worthless at once, and show those that are left."""
    await end_share(request)
    return RedirectResponse(local("/shares"), status_code=303)
