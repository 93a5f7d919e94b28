"""Forgetting a session for good: a page that says what goes, and the button on it."""

from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from exporter.missioncontrol.http.upload_api import checked_id
from exporter.missioncontrol.pages.markup import counted, escape, moment, session_path
from exporter.missioncontrol.pages.page import fragment, is_fragment, page
from exporter.missioncontrol.receiver import receiver_of
from exporter.missioncontrol.store import queries


async def forget_page(request: Request) -> Response:
    """Ask whether a session shall be forgotten; the script shows the same over the session's page."""
    session_id = checked_id(request.path_params["id"])
    session = await receiver_of(request).read(lambda database: queries.session(database, session_id))
    content = _question(session)
    return fragment(request, content) if is_fragment(request) else page(request, "Forget a session", content, here="/")


async def forget(request: Request) -> Response:
    """Forget it, and show the sessions that are left."""
    await receiver_of(request).forget([checked_id(request.path_params["id"])])
    return RedirectResponse("/", status_code=303)


def _question(session: dict[str, Any]) -> str:
    path = escape(session_path(session["id"]))
    running = (
        "<p><b>It still runs.</b> What it does from now on is not shown here either.</p>"
        if session["state"] in ("working", "idle", "needs_attention")
        else ""
    )
    return (
        f'<article class="forget"><h1>Forget this session?</h1><p>{escape(str(session["title"] or session["id"]))}</p>'
        f'<p class="quiet">{counted(session["events"], "event")}, last activity {moment(session["last_activity"])}</p>'
        f"{running}<p>Mission Control deletes its events, texts, figures and search words from its files, and takes it"
        " no more. The session itself stays where Copilot CLI keeps it, and other places that it was sent to keep"
        f' theirs.</p><form method="post" action="{path}/forget"><button class="button danger">Forget it for good'
        f'</button><a class="button keep" href="{path}">Keep it</a></form></article>'
    )
