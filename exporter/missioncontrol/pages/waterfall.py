"""The spans of one interaction as bars on the axis of its time, each a link to the event that began it."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from exporter.missioncontrol.http.upload_api import checked_id
from exporter.missioncontrol.pages.formats import session_path
from exporter.missioncontrol.pages.rendering import page
from exporter.missioncontrol.receiver import receiver_of
from exporter.missioncontrol.store import queries

_SPANS_MAX: Final = 600
_DEPTH_SHOWN_MAX: Final = 6
_TICKS_MAX: Final = 50
_KINDS: Final = ("chat", "execute_tool", "invoke_agent")
_ERROR_STATUS: Final = 2
_NANOSECONDS: Final = 1_000_000_000
_MILLISECOND: Final = 1_000_000


@dataclass(slots=True)
class _Node:
    """A span of OTLP JSON, and those inside of it."""

    span: dict[str, Any]
    start: int
    end: int
    inside: list["_Node"] = field(default_factory=list)


async def waterfall_page(request: Request) -> Response:
    """Show the spans of the interaction that an event began, or of the whole session."""
    receiver = receiver_of(request)
    session_id = checked_id(request.path_params["id"])
    event_id = request.query_params.get("at") or None
    make = receiver.make_trace
    drawn: dict[str, Any] = {"bars": None}
    if make is not None:
        trace = await receiver.read(lambda database: make(session_id, queries.lines(database, session_id), event_id))
        drawn = _drawn(_spans(trace))
    return page(request, "waterfall.html", "waterfall", path=session_path(session_id), **drawn)


def _spans(trace: bytes) -> list[_Node]:
    return [
        _Node(span, int(span["startTimeUnixNano"]), int(span["endTimeUnixNano"]))
        for resource in msgspec.json.decode(trace).get("resourceSpans", ())
        for scoped in resource.get("scopeSpans", ())
        for span in scoped.get("spans", ())
    ]


def _drawn(spans: list[_Node]) -> dict[str, Any]:
    """Return the bars of these spans, and their axis."""
    if not spans:
        return {"bars": []}
    start = min(node.start for node in spans)
    length = max(1, max(node.end for node in spans) - start)
    return {
        "bars": [_bar(node, depth, start, length) for node, depth in islice(_walk(spans), _SPANS_MAX)],
        "axis": {
            "start": start / _MILLISECOND,
            "end": (start + length) / _MILLISECOND,
            "ticks": [length * part / 4 / _NANOSECONDS for part in range(5)],
        },
        "hidden": max(0, len(spans) - _SPANS_MAX),
    }


def _walk(spans: list[_Node]) -> Iterator[tuple[_Node, int]]:
    """Yield each span and how many it is inside of, in the order in which they began."""
    nodes = {node.span["spanId"]: node for node in spans}
    roots: list[_Node] = []
    for node in sorted(nodes.values(), key=lambda node: (node.start, -node.end)):
        parent = nodes.get(node.span.get("parentSpanId", ""))
        (roots if parent is None or parent is node else parent.inside).append(node)
    waiting = [(node, 0) for node in reversed(roots)]
    while waiting:
        node, depth = waiting.pop()
        yield node, depth
        waiting += [(inner, depth + 1) for inner in reversed(node.inside)]


def _bar(node: _Node, depth: int, start: int, length: int) -> dict[str, Any]:
    span, name = node.span, node.span["name"]
    attributes = {one["key"]: one["value"] for one in span.get("attributes", ())}
    left = (node.start - start) / length * 100
    return {
        "kind": name.partition(" ")[0] if name.startswith(_KINDS) else "other",
        "name": _said_once(name),
        "depth": min(depth, _DEPTH_SHOWN_MAX),
        "event": attributes.get("github.copilot.event.id", {}).get("stringValue", ""),
        "is_open": attributes.get("github.copilot.orphaned", {}).get("boolValue", False),
        "is_error": span.get("status", {}).get("code") == _ERROR_STATUS,
        "seconds": (node.end - node.start) / _NANOSECONDS,
        "left": left,
        "width": min(max(0.25, (node.end - node.start) / length * 100), 100 - left),
        "ticks": [
            {"name": mark.get("name", ""), "left": (int(mark["timeUnixNano"]) - start) / length * 100}
            for mark in span.get("events", ())[:_TICKS_MAX]
        ],
    }


def _said_once(name: str) -> str:
    """Return a span's name; that of a shell ends with what runs the command, which mostly is the tool's name again."""
    words = name.split(" ")
    return " ".join(words[:-1] if len(words) > 2 and words[-1] == words[-2] else words)
