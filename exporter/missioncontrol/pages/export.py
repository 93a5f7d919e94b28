"""A session to take away, redacted already: JSON lines, Markdown, or one HTML file that needs nothing else."""

import base64
from collections.abc import AsyncIterator, Callable
from hashlib import sha256
from typing import Final

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from exporter.missioncontrol.http.responses import ApiError
from exporter.missioncontrol.http.upload_api import checked_id
from exporter.missioncontrol.pages.agents import names_of
from exporter.missioncontrol.pages.entries import entry_items
from exporter.missioncontrol.pages.markdown import entry_markdown, head_markdown
from exporter.missioncontrol.pages.markup import IN_UTC, escape
from exporter.missioncontrol.pages.page import HEADERS, style_sheet
from exporter.missioncontrol.pages.session_facts import session_head
from exporter.missioncontrol.pages.timeline import windows
from exporter.missioncontrol.pages.timeline.pieces import Pieces
from exporter.missioncontrol.receiver import Receiver, receiver_of
from exporter.missioncontrol.store import queries
from exporter.missioncontrol.store.agent_tree import tree as tree_of
from exporter.missioncontrol.store.port import Database

_PAGE: Final = 2000
_TYPES: Final = {"jsonl": "application/jsonl", "md": "text/markdown", "html": "text/html"}


async def export(request: Request) -> Response:
    """Give the whole session as a file to save."""
    session_id = checked_id(request.path_params["id"])
    form = request.path_params["form"]
    if form not in _TYPES:
        raise ApiError(404, "unknown_form", "A session is not given in this form.", hint="Try jsonl, md or html.")
    receiver = receiver_of(request)
    await receiver.read(lambda database: queries.session(database, session_id))
    content = _lines(receiver, session_id) if form == "jsonl" else _told(receiver, session_id, form)
    name = "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in session_id)
    headers = {**HEADERS, "Content-Disposition": f'attachment; filename="{name}.{form}"', "Cache-Control": "no-store"}
    return StreamingResponse(content, media_type=_TYPES[form], headers=headers)


async def _lines(receiver: Receiver, session_id: str) -> AsyncIterator[bytes]:
    after: str | None = None
    while True:
        page = await receiver.read(_page_after(session_id, after))
        yield b"".join(body + b"\n" for body in page.bodies)
        after = page.next
        if after is None:
            return


def _page_after(session_id: str, after: str | None) -> Callable[[Database], queries.EventPage]:
    return lambda database: queries.events(database, session_id, after=after, limit=_PAGE)


async def _told(receiver: Receiver, session_id: str, form: str) -> AsyncIterator[bytes]:
    is_html = form == "html"
    names = names_of(await receiver.read(lambda database: tree_of(database, session_id)))
    yield await receiver.read(lambda database: _head(database, session_id, is_html))
    pieces = Pieces(session_id)
    while pieces.has_more:
        entries = await receiver.read(pieces.next)
        if is_html:
            told = entry_items(session_id, entries, names, alone=True)
        else:
            told = "".join(entry_markdown(entry, names) for entry in entries)
        yield told.encode("utf-8", "replace")
    if is_html:
        yield b"</ol></main></body></html>"


def _head(database: Database, session_id: str, is_html: bool) -> bytes:
    session = queries.session(database, session_id)
    figures = windows.figures(database, [session_id]).get(session_id, {})
    if not is_html:
        return head_markdown(session, figures).encode("utf-8", "replace")
    style = style_sheet()
    allowed = base64.b64encode(sha256(style).digest()).decode()
    document = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta http-equiv="Content-Security-Policy" content="'
        f"default-src 'none'; style-src 'sha256-{allowed}'; base-uri 'none'; form-action 'none'\">"
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(str(session['title'] or session_id))}</title><style>{style.decode()}</style></head>"
        f'<body class="alone"><main><div class="head">{session_head(session, figures, None)}'
        f'<p class="quiet">{IN_UTC}</p></div><ol class="timeline">'
    )
    return document.encode("utf-8", "replace")
