"""The page of the notifications of agents and of what waits for a person, across all sessions."""

from collections import Counter
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from exporter.missioncontrol.http.read_api import read_counts, read_notifications
from exporter.missioncontrol.pages.formats import FilterLink, address, local
from exporter.missioncontrol.pages.rendering import page

_SHOWN: Final = 100
_TYPES_MAX: Final = 20
_CATEGORIES: Final = {"wait": "Waiting", "error": "Errors", "warning": "Warnings", "notification": "Notifications"}


async def feed_page(request: Request) -> Response:
    """Show the feed, newest first; for the script only the list."""
    entries, cursor = await read_notifications(request, _SHOWN)
    type, status = (request.query_params.get(name) or None for name in ("type", "status"))
    counts: dict[str, Counter[str]] = {name: Counter() for name in ("category", "type", "status")}
    for row in await read_counts(request):
        for name, counter in counts.items():
            if row[name]:
                counter[row[name]] += row["count"]

    def link(shown: str, count: int, is_current: bool, **query: object) -> FilterLink:
        return FilterLink(shown, count, is_current, "", address(local("/feed"), **query))

    categories = counts["category"]
    return page(
        request,
        "feed.html",
        "list",
        entries=entries,
        categories=[
            link("All", categories.total(), not type and not status),
            *(
                link(shown, categories[name], type == name, type=name, status=status)
                for name, shown in _CATEGORIES.items()
            ),
        ],
        types=[
            link(name.replace("_", " "), count, type == name, type=name, status=status)
            for name, count in counts["type"].most_common(_TYPES_MAX)
        ],
        statuses=[
            link(name, count, status == name, type=type, status=None if status == name else name)
            for name, count in counts["status"].most_common(_TYPES_MAX)
        ],
        following=address(local("/feed"), type=type, status=status, cursor=cursor) if cursor else None,
    )
