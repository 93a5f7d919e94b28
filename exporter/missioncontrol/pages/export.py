"""A session to take away, redacted already: JSON lines, Markdown, or one HTML file that needs nothing else.

In Markdown, text of entries cannot end the fence it stands in. What was said keeps its own Markdown, but for what would
load or run something where the document is read.
"""

import re
from collections.abc import AsyncIterator, Callable, Iterable
from functools import partial
from typing import Any, Final, TypeAlias

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from exporter.missioncontrol.http.read_api import figures_only
from exporter.missioncontrol.http.responses import ApiError
from exporter.missioncontrol.http.upload_api import checked_id
from exporter.missioncontrol.pages.agents import names_of
from exporter.missioncontrol.pages.figures import SOURCES, Figures, exact, figures_of
from exporter.missioncontrol.pages.formats import IN_UTC, clock, duration
from exporter.missioncontrol.pages.rendering import HEADERS, render
from exporter.missioncontrol.pages.timeline import windows
from exporter.missioncontrol.pages.timeline.entry import Entry, mark_bars, mark_days
from exporter.missioncontrol.pages.timeline.teller import ENDS, Teller
from exporter.missioncontrol.receiver import Receiver, receiver_of
from exporter.missioncontrol.store import queries
from exporter.missioncontrol.store.agent_tree import tree as tree_of
from exporter.missioncontrol.store.port import Database

CleanRows: TypeAlias = Callable[[Iterable[windows.TimelineRow]], list[windows.TimelineRow]]
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
    content = _lines(receiver, session_id) if form == "jsonl" else told(receiver, session_id, form)
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


async def told(receiver: Receiver, session_id: str, form: str, clean: CleanRows | None = None) -> AsyncIterator[bytes]:
    """Yield the session as a document, or with `clean` its events after that, and nothing else that has a text."""
    is_html = form == "html"
    names = names_of(await receiver.read(lambda database: tree_of(database, session_id)))
    names = names if clean is None else {}
    head = partial(_head, session_id=session_id, is_html=is_html, hides=clean is not None)
    yield (await receiver.read(head)).encode("utf-8", "replace")
    pieces = _Pieces(session_id, clean)
    while pieces.has_more:
        entries = await receiver.read(pieces.next)
        if is_html:
            mark_bars(entries)
            text = render("export.html", "entries", entries=entries, names=names)
        else:
            text = "".join(entry_markdown(entry, names) for entry in entries)
        yield text.encode("utf-8", "replace")
    if is_html:
        yield render("export.html", "end").encode()


def _head(database: Database, session_id: str, is_html: bool, hides: bool) -> str:
    session = queries.session(database, session_id)
    session = figures_only(session) if hides else session
    figures = figures_of(database, [session_id]).get(session_id, {})
    if not is_html:
        return head_markdown(session, figures)
    return render("export.html", "head", session=session, figures=figures)


class _Pieces:
    """Tells a session piece by piece, so that one of any length is never held at once.

    What is open where a piece ends gets its end from further on, which is not told once more.
    """

    def __init__(self, session_id: str, clean: CleanRows | None = None) -> None:
        self.has_more = True
        self._clean = clean or list
        self._session_id = session_id
        self._place: windows.EventPlace | None = None
        self._rewinds: list[windows.Rewind] = []
        self._joined: set[str] = set()
        self._day = ""

    def next(self, database: Database) -> list[Entry]:
        """Return the entries of the next piece."""
        if self._place is None:
            self._place = windows.edge_of(database, self._session_id, is_end=False)
            self._rewinds = windows.rewinds(database, self._session_id)
        window = windows.read_window(database, self._place, windows.TimelineScope(), _EVENTS)
        teller = Teller()
        rows = self._clean(row for row in window.rows if row.envelope.id not in self._joined)
        teller.tell(rows, windows.rewinds_within(self._rewinds, window))
        self._joined.difference_update(row.envelope.id for row in window.rows)
        self.has_more = window.behind
        if window.behind:
            self._place = windows.EventPlace(self._place.session, *window.rows[-1].place)
            ends = windows.further_of_types(database, self._place, ENDS, _AHEAD_MAX)
            self._joined |= teller.finish(one for end in ends for one in self._clean([end]))
        self._day = mark_days(teller.entries, self._day)
        return teller.entries


_FACTS: Final = (
    "id",
    "state",
    "repository",
    "branch",
    "cwd",
    "model",
    "owner",
    "host",
    "started",
    "last_activity",
    "events",
    "masked",
)
_SPECIAL: Final = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", "`": "&#96;", **{one: f"\\{one}" for one in "\\*_[]#|!"}}
)
_TAG: Final = re.compile(r"<(?=[A-Za-z/!?])")
_IMAGE: Final = re.compile(r"!(?=\[)")
_LINK: Final = re.compile(r"\](?=[(:])(?![(:][ \t]*(?:https?://|mailto:))", re.IGNORECASE)
_FENCE: Final = re.compile(r"(`{3,}|~{3,})([^\n]*)")
_FENCE_INSIDE: Final = re.compile(r"[ \t>*+0-9.)-]+(?:```|~~~)")
_CODE: Final = re.compile(r"(?<!`)(`+)(?!`)(?:.*?[^`])\1(?!`)")


def head_markdown(session: dict[str, Any], figures: Figures) -> str:
    """Return the beginning of the document: what the session is, and its figures with their sources."""
    lines = [f"# {_plain(str(session['title'] or session['id']))}", ""]
    for name in _FACTS:
        if session.get(name):
            lines.append(f"- {name.replace('_', ' ')}: {_plain(str(session[name]))}")
    for name, told in figures.items():
        values = ", ".join(f"{exact(value)} ({SOURCES[source]})" for source, value in told.items())
        lines.append(f"- {name.replace('_', ' ')}{'' if name == 'cost' else ' tokens'}: {values}")
    return "\n".join([*lines, "", IN_UTC]) + "\n"


def entry_markdown(entry: Entry, names: dict[str, str]) -> str:
    """Return one entry, under the day that begins with it."""
    day = f"\n## {_plain(entry.day)}\n" if entry.day else ""
    facts = [fact for fact in entry.facts if fact]
    if entry.seconds is not None:
        facts.append(duration(entry.seconds))
    if entry.is_running:
        facts.append("no result")
    if entry.level in ("warning", "error"):
        facts.append(entry.level)
    said = f" — {_plain(', '.join(facts))}" if facts else ""
    who = "" if entry.agent is None else f"({names.get(entry.agent) or entry.agent}) "
    head = _plain(f"{who}{entry.title or entry.type}")
    at = _plain(clock(entry.at))
    if entry.kind == "turn":
        return f"{day}\n### {head}{said} · {at}\n"
    if entry.kind in ("user", "assistant"):
        return f"{day}\n## {head} · {at}{said}\n\n{_quoted(entry.text)}\n{_blocks(entry)}"
    line = f" {_code(entry.line)}" if entry.line else ""
    text = f"\n{_quoted(entry.text)}\n" if entry.text else ""
    return f"{day}\n- **{head}**{line}{said} · {at}\n{text}{_blocks(entry)}"


def _blocks(entry: Entry) -> str:
    told = ""
    for block in entry.blocks:
        told += f"\n{block.label}:\n\n{_fenced(block.text)}\n" if block.text else ""
        told += "\n_truncated; the JSON lines export has all of it_\n" if block.is_cut or not block.text else ""
    return told


def _plain(text: str) -> str:
    return " ".join(text.split()).translate(_SPECIAL)


def _quoted(text: str) -> str:
    """Return what was said as a quotation; its HTML, if any, is text."""
    return "\n".join(f"> {line}" for line in _defused(_TAG.sub("&lt;", text).splitlines()))


def _defused(lines: list[str]) -> list[str]:
    """Return lines whose images are text, and whose links lead to the web or to a mailbox.

    Code stays as it is where it certainly is code: in fences at the beginning of a line, and between backticks, of
    which none is left over in any line. Where that is not so, readers of Markdown may see code elsewhere than we do.
    """
    fenced = _fenced_lines(lines)
    prose = [line for line, is_code in zip(lines, fenced, strict=True) if not is_code]
    has_code = not any("`" in _CODE.sub("", line) or "\\`" in line for line in prose)
    return [
        line if is_code else _without_links(line, has_code=has_code)
        for line, is_code in zip(lines, fenced, strict=True)
    ]


def _fenced_lines(lines: list[str]) -> list[bool]:
    """Tell of each line whether it is code in a fence; of none when a fence may be inside of something else."""
    if any(_FENCE_INSIDE.match(line) for line in lines):
        return [False] * len(lines)
    fenced: list[bool] = []
    fence = ""
    for line in lines:
        match = _FENCE.match(line)
        if fence:
            fenced.append(True)
            if match and match[1].startswith(fence) and not match[2].strip():
                fence = ""
        else:
            fence = match[1] if match and not (match[1][0] == "`" and "`" in match[2]) else ""
            fenced.append(bool(fence))
    return fenced


def _without_links(line: str, *, has_code: bool) -> str:
    parts: list[str] = []
    end = 0
    for code in _CODE.finditer(line) if has_code else ():
        parts += (_text_only(line[end : code.start()]), code[0])
        end = code.end()
    return "".join((*parts, _text_only(line[end:])))


def _text_only(text: str) -> str:
    return _LINK.sub(r"]\\", _IMAGE.sub(r"!\\", text))


def _code(text: str) -> str:
    ticks = "`" * (_longest_run(text) + 1)
    return f"{ticks} {text} {ticks}"


def _fenced(text: str) -> str:
    fence = "`" * max(3, _longest_run(text) + 1)
    return f"{fence}\n{text}\n{fence}\n"


def _longest_run(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)
