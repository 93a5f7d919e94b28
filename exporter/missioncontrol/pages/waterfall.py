"""The spans of one interaction as bars on the axis of its time, each a link to the event that began it."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from exporter.missioncontrol.http.upload_api import checked_id
from exporter.missioncontrol.pages.markup import address, anchor, counted, duration, escape, session_path
from exporter.missioncontrol.pages.page import fragment, is_fragment, page
from exporter.missioncontrol.receiver import receiver_of
from exporter.missioncontrol.store import queries

_SPANS_MAX: Final = 600
_DEPTH_MAX: Final = 32
_EVENT_ID: Final = "github.copilot.event.id"
_ORPHANED: Final = "github.copilot.orphaned"
_ERROR_STATUS: Final = 2
_NANOSECONDS: Final = 1_000_000_000
_MILLISECOND: Final = 1_000_000


class _Value(msgspec.Struct):
    stringValue: str = ""  # noqa: N815  the names of OTLP
    boolValue: bool = False  # noqa: N815


class _Attribute(msgspec.Struct):
    key: str
    value: _Value = msgspec.field(default_factory=_Value)


class _Status(msgspec.Struct):
    code: int = 0


class _Mark(msgspec.Struct):
    timeUnixNano: str  # noqa: N815
    name: str = ""


class _Span(msgspec.Struct):
    spanId: str  # noqa: N815
    name: str
    startTimeUnixNano: str  # noqa: N815
    endTimeUnixNano: str  # noqa: N815
    parentSpanId: str = ""  # noqa: N815
    attributes: list[_Attribute] = []
    events: list[_Mark] = []
    status: _Status = msgspec.field(default_factory=_Status)

    @property
    def event(self) -> str:
        """The id of the event that began it."""
        return next((one.value.stringValue for one in self.attributes if one.key == _EVENT_ID), "")

    @property
    def is_open(self) -> bool:
        """Whether no event has ended it yet."""
        return any(one.key == _ORPHANED and one.value.boolValue for one in self.attributes)


class _Scoped(msgspec.Struct):
    spans: list[_Span] = []


class _Resource(msgspec.Struct):
    scopeSpans: list[_Scoped] = []  # noqa: N815


class _Trace(msgspec.Struct):
    resourceSpans: list[_Resource] = []  # noqa: N815


@dataclass(slots=True)
class _Node:
    span: _Span
    start: int
    end: int
    inside: list["_Node"] = field(default_factory=list)


async def waterfall_page(request: Request) -> Response:
    """Show the spans of the interaction that an event began, or of the whole session."""
    receiver = receiver_of(request)
    session_id = checked_id(request.path_params["id"])
    event_id = request.query_params.get("at") or None
    make = receiver.make_trace
    path = session_path(session_id)
    if make is None:
        content = _boxed('<p class="quiet">This receiver has no bridge to traces, so there is no waterfall here.</p>')
    else:
        written = await receiver.read(lambda database: make(session_id, queries.lines(database, session_id), event_id))
        content = _drawn(_spans(written), path)
    if is_fragment(request):
        return fragment(request, content)
    otlp = f'<a href="/api/v1{address(path)}/trace">as OTLP JSON</a>'
    back = f'<p><a href="{address(path)}">Back to the session</a> · {otlp}</p>'
    return page(request, "Waterfall", f"<h1>Waterfall</h1>{back}{content}", here="/")


def _spans(written: bytes) -> list[_Span]:
    trace = msgspec.json.decode(written, type=_Trace)
    return [span for resource in trace.resourceSpans for scoped in resource.scopeSpans for span in scoped.spans]


def _boxed(content: str, axis: str = "") -> str:
    return f'<div class="waterfall"{axis}>{content}</div>'


def _drawn(spans: list[_Span], path: str) -> str:
    """Return the waterfall of these spans; it says where its axis begins and ends, in milliseconds since 1970."""
    if not spans:
        return _boxed('<p class="quiet">No span here yet: a span is drawn when its interaction has begun.</p>')
    roots = _tree(spans)
    start = min(int(span.startTimeUnixNano) for span in spans)
    length = max(1, max(int(span.endTimeUnixNano) for span in spans) - start)
    rows = "".join(
        _row(node, depth, path, start, length)
        for _, (node, depth) in zip(range(_SPANS_MAX), _walk(roots), strict=False)
    )
    ticks = "".join(f"<span>{duration(length * part / 4 / _NANOSECONDS)}</span>" for part in range(5))
    hidden = len(spans) - _SPANS_MAX
    rest = f'<p class="quiet">Not drawn: {counted(hidden, "more span")}.</p>' if hidden > 0 else ""
    axis = f' data-from="{start / _MILLISECOND:.3f}" data-to="{(start + length) / _MILLISECOND:.3f}"'
    return _boxed(f'<div class="axis" aria-hidden="true">{ticks}</div><ol>{rows}</ol>{rest}', axis)


def _tree(spans: list[_Span]) -> list[_Node]:
    nodes = {span.spanId: _Node(span, int(span.startTimeUnixNano), int(span.endTimeUnixNano)) for span in spans}
    roots: list[_Node] = []
    for node in sorted(nodes.values(), key=lambda node: (node.start, -node.end)):
        parent = nodes.get(node.span.parentSpanId)
        (roots if parent is None or parent is node else parent.inside).append(node)
    return roots


def _walk(roots: list[_Node]) -> Iterator[tuple[_Node, int]]:
    waiting = [(node, 0) for node in reversed(roots)]
    while waiting:
        node, depth = waiting.pop()
        yield node, depth
        waiting += [(inner, depth + 1) for inner in reversed(node.inside)]


def _row(node: _Node, depth: int, path: str, start: int, length: int) -> str:
    span = node.span
    kind = span.name.partition(" ")[0] if span.name.startswith(("chat", "execute_tool", "invoke_agent")) else "other"
    failed = " open" if span.is_open else " error" if span.status.code == _ERROR_STATUS else ""
    left, width = (node.start - start) / length * 100, max(0.25, (node.end - node.start) / length * 100)
    ticks = "".join(
        f'<rect class="tick" x="{(int(mark.timeUnixNano) - start) / length * 100:.2f}" y="0" width="0.3" height="10">'
        f"<title>{escape(mark.name)}</title></rect>"
        for mark in span.events[:50]
    )
    took = ("open, " if span.is_open else "") + duration((node.end - node.start) / _NANOSECONDS)
    said = escape(_said_once(span.name))
    name = f'<span class="name depth-{min(depth, 6)}"><span title="{said}">{said}</span> <small>{took}</small></span>'
    bar = (
        f'<svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect class="span" x="{left:.2f}" y="1" width="{min(width, 100 - left):.2f}" height="8"/>{ticks}</svg>'
    )
    if not span.event:
        return f'<li class="{kind}{failed}"><span>{name}{bar}</span></li>'
    link = f"{address(path, at=span.event)}#{anchor(span.event)}"
    return f'<li class="{kind}{failed}"><a href="{link}">{name}{bar}</a></li>'


def _said_once(name: str) -> str:
    """Return a span's name; that of a shell ends with what runs the command, which mostly is the tool's name again."""
    words = name.split(" ")
    return " ".join(words[:-1] if len(words) > 2 and words[-1] == words[-2] else words)
