"""The pages for people: the sessions, and the events of one. Plain HTML, every string escaped, no script at all."""

import json
from html import escape
from importlib.resources import files
from typing import Any, Final
from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from exporter.core.envelope import Envelope, decode
from exporter.missioncontrol import queries
from exporter.missioncontrol.answers import tagged_answer
from exporter.missioncontrol.api import read_events, read_sessions
from exporter.missioncontrol.receiver import receiver_of
from exporter.missioncontrol.wire import checked_id

_HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_STATES: Final = {
    "working": "working",
    "idle": "idle",
    "needs_attention": "needs attention",
    "ended": "ended",
    "crashed": "crashed",
}
_SESSIONS_SHOWN, _EVENTS_SHOWN = 100, 200
_TEXT_SHOWN_MAX, _BODY_SHOWN_MAX = 2000, 64 * 1024


async def sessions_page(request: Request) -> Response:
    """Show the sessions, newest activity first, with a filter."""
    found, following = await read_sessions(request, _SESSIONS_SHOWN)
    asked = request.query_params
    rows = "".join(_session_row(session) for session in found)
    if not found:
        rows = '<tr><td colspan="7" class="quiet">No session here yet.</td></tr>'
    state, words = asked.get("state", ""), asked.get("q", "")
    options = "".join(
        f'<option value="{name}"{" selected" if name == state else ""}>{shown}</option>'
        for name, shown in {"": "any state", **_STATES}.items()
    )
    more = _more("/?" + urlencode({"state": state, "q": words, "cursor": following})) if following else ""
    content = (
        '<form class="filter" action="/" method="get" role="search">'
        f'<label>Search <input type="search" name="q" value="{escape(words)}"></label>'
        f'<label>State <select name="state">{options}</select></label><button>Show</button></form>'
        '<table><thead><tr><th scope="col">Session</th><th scope="col">State</th><th scope="col">Repository</th>'
        '<th scope="col">Model</th><th scope="col">Last activity</th><th scope="col" class="number">Events</th>'
        f'<th scope="col" class="number">Tokens</th></tr></thead><tbody>{rows}</tbody></table>{more}'
    )
    return _page(request, "Sessions", content)


async def session_page(request: Request) -> Response:
    """Show one session and a window of its events."""
    session_id = checked_id(request.path_params["id"])
    shown = await receiver_of(request).read(lambda database: queries.session(database, session_id))
    page = await read_events(request, _EVENTS_SHOWN)
    path = f"/sessions/{quote(session_id)}"
    more = _more(f"{path}?" + urlencode({"after": page.next})) if page.next else ""
    title = str(shown["title"] or session_id)
    facts = "".join(f"<div><dt>{name}</dt><dd>{escape(value)}</dd></div>" for name, value in _facts(shown) if value)
    content = (
        f'<h1>{escape(title)} {_badge(str(shown["state"]))}</h1><dl class="facts">{facts}</dl>'
        f'<ol class="events">{"".join(_event(body) for body in page.bodies)}</ol>{more}'
    )
    return _page(request, title, content)


async def style(request: Request) -> Response:
    """Give the style sheet."""
    sheet = files("exporter.missioncontrol").joinpath("style.css").read_bytes()
    return tagged_answer(request, sheet, media_type="text/css")


def _page(request: Request, title: str, content: str) -> Response:
    document = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta name="color-scheme" content="light dark"><title>{escape(title)} · Mission Control</title>'
        '<link rel="stylesheet" href="/style.css"></head><body>'
        f'<header><a href="/">Mission Control</a></header><main>{content}</main></body></html>'
    )
    answer = tagged_answer(request, document.encode("utf-8", "replace"), media_type="text/html")
    answer.headers.update(_HEADERS)
    return answer


def _session_row(session: dict[str, Any]) -> str:
    title = escape(str(session["title"] or session["id"]))
    place = " · ".join(str(session[name]) for name in ("repository", "branch") if session[name])
    tokens = sum(figure["value"] for name, figure in session["tokens"].items() if name in ("input", "output"))
    return (
        f'<tr><td><a href="/sessions/{quote(session["id"])}">{title}</a></td><td>{_badge(session["state"])}</td>'
        f"<td>{escape(place)}</td><td>{escape(str(session['model'] or ''))}</td>"
        f'<td>{_time(session["last_activity"])}</td><td class="number">{session["events"]:,}</td>'
        f'<td class="number">{f"{tokens:,}" if tokens else ""}</td></tr>'
    )


def _facts(session: dict[str, Any]) -> list[tuple[str, str]]:
    def text(name: str) -> str:
        return str(session[name] or "")

    tokens = ", ".join(f"{figure['value']:,} {name.replace('_', ' ')}" for name, figure in session["tokens"].items())
    sources = {figure["source"] for figure in session["tokens"].values()}
    return [
        ("Session", text("id")),
        ("Repository", text("repository")),
        ("Branch", text("branch")),
        ("Directory", text("cwd")),
        ("Host", text("host")),
        ("Model", text("model")),
        ("Started", text("started")),
        ("Last activity", text("last_activity")),
        ("Events", f"{session['events']:,}"),
        ("Tokens", f"{tokens} (from {', '.join(sorted(sources))})" if tokens else ""),
        ("Secrets masked", f"{session['masked']:,}" if session["masked"] else ""),
    ]


def _event(body: bytes) -> str:
    envelope = decode(body)
    if not isinstance(envelope, Envelope):
        return ""
    raw = body[:_BODY_SHOWN_MAX].decode("utf-8", "replace")
    cut = "" if len(body) <= _BODY_SHOWN_MAX else f'<p class="quiet">{len(body):,} bytes; the first are shown.</p>'
    agent = f'<span class="agent">{escape(envelope.agentId)}</span>' if envelope.agentId else ""
    text = _said(envelope)
    said = f'<p class="said">{escape(text)}</p>' if text else ""
    return (
        f'<li id="{escape(envelope.id)}" class="{"speech" if text else "event"}"><div class="line">'
        f'{_time(envelope.timestamp)}<span class="type">{escape(envelope.type)}</span>'
        f'{agent}<a class="permalink" href="#{quote(envelope.id)}" aria-label="Link to this event">#</a></div>{said}'
        f"<details><summary>as delivered</summary><pre>{escape(raw)}</pre>{cut}</details></li>"
    )


def _said(envelope: Envelope) -> str:
    """Return what a person or the assistant said in this event, if anything."""
    if envelope.type not in ("user.message", "assistant.message"):
        return ""
    try:
        content = json.loads(bytes(envelope.data)).get("content")
    except (ValueError, AttributeError, RecursionError):
        return ""
    return content[:_TEXT_SHOWN_MAX] if isinstance(content, str) else ""


def _badge(state: str) -> str:
    return f'<span class="state {escape(state)}">{escape(_STATES.get(state, state))}</span>'


def _time(timestamp: str | None) -> str:
    text = timestamp or ""
    return f'<time datetime="{escape(text)}">{escape(text[:19].replace("T", " "))}</time>'


def _more(address: str) -> str:
    return f'<p class="more"><a href="{escape(address)}">More</a></p>'


ROUTES: Final = (
    Route("/", sessions_page, methods=["GET"]),
    Route("/sessions/{id}", session_page, methods=["GET"]),
    Route("/style.css", style, methods=["GET"]),
)
