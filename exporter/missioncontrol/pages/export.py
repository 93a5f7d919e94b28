"""A session to take away, redacted already: JSON lines, Markdown, or one HTML file that needs nothing else."""

import base64
from collections.abc import AsyncIterator
from hashlib import sha256
from typing import Final

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from exporter.missioncontrol.http.responses import ApiError
from exporter.missioncontrol.http.upload_api import checked_id
from exporter.missioncontrol.pages.agents import names_of
from exporter.missioncontrol.pages.figures import figures_of
from exporter.missioncontrol.pages.markdown import entry_markdown, head_markdown
from exporter.missioncontrol.pages.rendering import HEADERS, render
from exporter.missioncontrol.pages.timeline import windows
from exporter.missioncontrol.pages.timeline.entry import Entry, mark_bars, mark_days
from exporter.missioncontrol.pages.timeline.teller import ENDS, Teller
from exporter.missioncontrol.receiver import Receiver, receiver_of
from exporter.missioncontrol.store import queries
from exporter.missioncontrol.store.agent_tree import tree as tree_of
from exporter.missioncontrol.store.port import Database
from exporter.missioncontrol.store.session_row import number_of

_EVENTS: Final = 2000
_AHEAD_MAX: Final = 50_000
"""How many later ends are looked through for those of what is open where a piece ends."""
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
    after, has_more = None, True
    while has_more:
        page = await receiver.read(lambda database: queries.events(database, session_id, after=after, limit=_EVENTS))  # noqa: B023
        yield b"".join(body + b"\n" for body in page.bodies)
        after = page.next
        has_more = after is not None


async def _told(receiver: Receiver, session_id: str, form: str) -> AsyncIterator[bytes]:
    is_html = form == "html"
    names = names_of(await receiver.read(lambda database: tree_of(database, session_id)))
    yield await receiver.read(lambda database: _head(database, session_id, is_html).encode("utf-8", "replace"))
    pieces = _Pieces(session_id)
    while pieces.has_more:
        entries = await receiver.read(pieces.next)
        if is_html:
            mark_bars(entries)
            told = render("export.html", "entries", entries=entries, names=names)
        else:
            told = "".join(entry_markdown(entry, names) for entry in entries)
        yield told.encode("utf-8", "replace")
    if is_html:
        yield render("export.html", "end").encode()


def _head(database: Database, session_id: str, is_html: bool) -> str:
    session = queries.session(database, session_id)
    figures = figures_of(database, [session_id]).get(session_id, {})
    if not is_html:
        return head_markdown(session, figures)
    style_hash = base64.b64encode(sha256(render("style.css").encode()).digest()).decode()
    return render("export.html", "head", session=session, figures=figures, style_hash=style_hash)


class _Pieces:
    """Tells a session piece by piece, so that one of any length is never held at once.

    What is open where a piece ends gets its end from further on, which is not told once more.
    """

    def __init__(self, session_id: str) -> None:
        self.has_more = True
        self._session_id = session_id
        self._last: windows.EventPlace | None = None
        self._rewinds: list[windows.Rewind] = []
        self._joined: set[str] = set()
        self._day = ""

    def next(self, database: Database) -> list[Entry]:
        """Return the entries of the next piece."""
        window = self._window(database)
        teller = Teller()
        rows = [row for row in window.rows if row.envelope.id not in self._joined]
        teller.tell(rows, windows.rewinds_within(self._rewinds, window))
        self._joined.difference_update(row.envelope.id for row in window.rows)
        self.has_more = window.behind
        if window.behind:
            self._last = windows.EventPlace(number_of(database, self._session_id), *window.rows[-1].place)
            self._joined |= teller.finish(windows.further_of_types(database, self._last, ENDS, _AHEAD_MAX))
        self._day = mark_days(teller.entries, self._day)
        return teller.entries

    def _window(self, database: Database) -> windows.Window:
        everybody = windows.TimelineScope()
        if self._last is not None:
            return windows.read_window(database, self._last, everybody, _EVENTS)
        self._rewinds = windows.rewinds(database, self._session_id)
        first = windows.edge_of(database, self._session_id, is_end=False)
        return windows.read_window(database, first, everybody, _EVENTS)
