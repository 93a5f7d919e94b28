"""Forgetting a session for good: a page that says what goes, and the button on it."""

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from exporter.missioncontrol.http.upload_api import checked_id
from exporter.missioncontrol.pages.page import page
from exporter.missioncontrol.receiver import receiver_of
from exporter.missioncontrol.store import queries


async def forget_page(request: Request) -> Response:
    """Ask whether a session shall be forgotten; the script shows the same over the session's page."""
    session_id = checked_id(request.path_params["id"])
    session = await receiver_of(request).read(lambda database: queries.session(database, session_id))
    return page(request, "forget.html", "content", session=session)


async def forget(request: Request) -> Response:
    """Forget it, and show the sessions that are left."""
    await receiver_of(request).forget([checked_id(request.path_params["id"])])
    return RedirectResponse("/", status_code=303)
