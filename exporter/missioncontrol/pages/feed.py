"""The page of what agents told and what waits for a person, across all sessions."""

from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from exporter.missioncontrol.http.search_api import read_counts, read_notifications
from exporter.missioncontrol.pages.markup import address, anchor, escape, marked, moment, session_path
from exporter.missioncontrol.pages.page import fragment, is_fragment, more, page

_SHOWN: Final = 100
_TYPES_MAX: Final = 20
_CATEGORIES: Final = {"wait": "Waits", "error": "Errors", "warning": "Warnings", "notification": "Notifications"}


async def feed_page(request: Request) -> Response:
    """Show the feed, newest first; for the script only the list."""
    entries, following = await read_notifications(request, _SHOWN)
    counts = await read_counts(request)
    asked = request.query_params
    type, status = asked.get("type") or None, asked.get("status") or None
    items = "".join(_item(entry) for entry in entries)
    if not items:
        items = '<li class="quiet empty">Nothing here. What agents tell, and what waits for you, appears here.</li>'
    further = more(address("/feed", type=type, status=status, cursor=following), "Earlier") if following else ""
    listed = f'<div data-part="list">{_filters(counts, type, status)}<ol class="feed">{items}</ol>{further}</div>'
    if is_fragment(request):
        return fragment(request, listed)
    return page(request, "Feed", f"<h1>Feed</h1>{listed}", here="/feed", body=' data-live="list"')


def _filters(counts: list[dict[str, Any]], type: str | None, status: str | None) -> str:
    by_category: dict[str, int] = {}
    by_type: dict[str, int] = {}
    by_status: dict[str, int] = {}
    for row in counts:
        by_category[row["category"]] = by_category.get(row["category"], 0) + row["count"]
        by_type[row["type"]] = by_type.get(row["type"], 0) + row["count"]
        if row["status"]:
            by_status[row["status"]] = by_status.get(row["status"], 0) + row["count"]
    categories = _filter("All", sum(by_category.values()), not type and not status)
    categories += "".join(
        _filter(shown, by_category.get(name, 0), type == name, type=name, status=status)
        for name, shown in _CATEGORIES.items()
    )
    types = "".join(
        _filter(name.replace("_", " "), count, type == name, type=name, status=status)
        for name, count in sorted(by_type.items(), key=lambda item: -item[1])[:_TYPES_MAX]
    )
    states = "".join(
        _filter(name, count, status == name, type=type, status=None if status == name else name)
        for name, count in sorted(by_status.items(), key=lambda item: -item[1])[:_TYPES_MAX]
    )
    return (
        f'<nav class="filters" aria-label="Kinds">{categories}</nav>'
        f'<nav class="filters small" aria-label="Types">{types}</nav>'
        f'<nav class="filters small" aria-label="Status">{states}</nav>'
    )


def _filter(shown: str, count: int, here: bool, **query: object) -> str:
    current = " aria-current=true" if here else ""
    return f'<a href="{address("/feed", **query)}"{current}>{escape(shown)} <b>{count:,}</b></a>'


def _item(entry: dict[str, Any]) -> str:
    link = escape(session_path(entry["session"]))
    if entry["event"] is not None:
        link = f"{address(session_path(entry['session']), at=entry['event'])}#{anchor(entry['event'])}"
    session = escape(str(entry["title"] or entry["session"]))
    category = entry["category"] if entry["category"] in _CATEGORIES else "notification"
    status, type = entry["status"], escape(str(entry["type"]).replace("_", " "))
    chip = f'<span class="fact {"error" if status == "failed" else ""}">{escape(status)}</span>' if status else ""
    return (
        f'<li data-key="{escape(entry["session"])} {escape(entry["event"] or entry["type"])}"'
        f' class="entry {category} {"open" if status == "waiting" else ""}">{moment(entry["timestamp"])}'
        f'<div class="what"><div class="who"><span class="title">{type}</span>{chip}</div>'
        f'<p>{marked(entry["text"])}</p><a href="{link}">{session}</a></div></li>'
    )
