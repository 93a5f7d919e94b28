"""Matching the CLI's spans with ours by what they are about, never by their ids, and measuring how far they differ."""

import math
from collections import defaultdict, deque
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any

from otel import names
from otel.machines.metrics.aggregate import AnyPoint
from otel.model import Attributes, Span
from otel.names import Instrument, Semconv
from tests.parity import reasons
from tests.parity.oracle import CliSpan, Session

TOKENS = (names.INPUT_TOKENS, names.OUTPUT_TOKENS, names.CACHE_READ_TOKENS, names.CACHE_WRITE_TOKENS,
          names.REASONING_TOKENS)  # fmt: skip
_AGENT, _TURN, _INTERACTION = names.AGENT_NAME.name, names.TURN_ID.name, names.INTERACTION_ID.name
NOTIFICATION = names.SYSTEM_NOTIFICATION.name
_ROOT_MS_MAX = 1_000
CUT_OFF = "query"
"""The CLI's error type of what it ended because a sub-agent failed."""


@dataclass(slots=True)
class Comparison:
    """How our spans of a session compare with the CLI's."""

    session: Session
    matched: list[tuple[CliSpan, Span]] = field(default_factory=list)
    missing: list[CliSpan] = field(default_factory=list)
    underivable: list[tuple[CliSpan, str]] = field(default_factory=list)
    ours: list[Span] = field(default_factory=list)
    points: list[tuple[Instrument, AnyPoint]] = field(default_factory=list)
    other_names: list[str] = field(default_factory=list)
    other_parents: list[str] = field(default_factory=list)
    explained_parents: list[str] = field(default_factory=list)
    tokens: int = 0
    other_tokens: list[str] = field(default_factory=list)
    notifications: int = 0
    other_notifications: list[str] = field(default_factory=list)

    def apart_ms(self, operation: str, edge: str) -> list[float]:
        """Return how far apart the starts or ends of an operation's spans are."""
        cut = reasons.was_cut(self.session)
        pairs = [
            (cli, ours)
            for cli, ours in self.matched
            if cli.operation == operation and not (cut and cli.attributes.get(names.ERROR_TYPE.name) == CUT_OFF)
        ]
        return [abs(getattr(cli, edge) - getattr(ours, edge)) / 1e6 for cli, ours in pairs]


def compare(session: Session) -> Comparison:
    """Compare a session's spans."""
    told = session.told()
    result = Comparison(session, ours=told.spans, points=told.points)
    derivable = []
    for written in session.cli:
        reason = reasons.why_not(session, written)
        if reason is None:
            derivable.append(written)
        else:
            result.underivable.append((written, reason))
    _match(result, derivable)
    own = {cli.id: span for cli, span in result.matched}
    for cli, span in result.matched:
        _compare_place(result, cli, span, own)
        _compare_tokens(result, cli, span)
        _compare_notifications(result, cli, span)
    if reasons.was_cut(session):
        _explain_cut(result)
    return result


def _explain_cut(result: Comparison) -> None:
    """Take out what differs because the CLI cut an interaction in two; what both parts tell must be the same still."""
    second = {cli.id for cli, reason in result.underivable if reason == "(cut)"}
    named = {f"{result.session.name}: {cli.name}" for cli, _ in result.matched if cli.parent in second}
    result.explained_parents += [where for where in result.other_parents if where in named]
    result.other_parents = [where for where in result.other_parents if where not in named]
    if any(cli.attributes.get(names.ERROR_TYPE.name) == CUT_OFF for cli, _ in result.matched):
        result.other_names = []  # a tool that was ended before it was known what it runs
    root = f"{result.session.name}: invoke_agent: "
    result.other_tokens = [where for where in result.other_tokens if not where.startswith(root)]
    theirs = [_typed(one.attributes) for cli in result.session.cli for one in cli.events if one.name == NOTIFICATION]
    mine = [_typed(_spelled(one.attributes)) for span in result.ours for one in span.events
            if one.name.name == NOTIFICATION]  # fmt: skip
    for item in (*theirs, *mine):
        item.pop("github.copilot.message", None)
    if theirs == mine:
        result.notifications, result.other_notifications = len(theirs), []


def _match(result: Comparison, derivable: list[CliSpan]) -> None:
    """Pair spans of the same operation that are about the same thing, in the order in which they began."""
    waiting: dict[Hashable, deque[Span]] = defaultdict(deque)
    for span in sorted(result.ours, key=lambda span: span.start_ns):
        waiting[_own_key(span, result.session.semconv)].append(span)
    for cli in sorted(derivable, key=lambda span: span.start_ns):
        spans = waiting[_cli_key(cli, result.session.semconv)]
        if spans:
            result.matched.append((cli, spans.popleft()))
        else:
            result.missing.append(cli)


def _cli_key(span: CliSpan, semconv: Semconv) -> Hashable:
    get = span.attributes.get
    about = {
        "execute_tool": get("gen_ai.tool.call.id"),
        "chat": get("gen_ai.response.id") if semconv == "cli" else (get(_INTERACTION), get(_TURN)),
        "invoke_agent": (get(_AGENT), _said([(one.name, one.attributes) for one in span.events]))
        if span.parent is None
        else get(_AGENT),
    }
    return span.operation, about.get(span.operation)


def _own_key(span: Span, semconv: Semconv) -> Hashable:
    get = span.attributes.get
    said = _said([(event.name.name, _spelled(event.attributes)) for event in span.events])
    about = {
        "execute_tool": get(names.TOOL_CALL_ID),
        "chat": get(names.RESPONSE_ID) if semconv == "cli" else (get(names.INTERACTION_ID), get(names.TURN_ID)),
        "invoke_agent": (get(names.AGENT_NAME), said) if span.parent_id is None else get(names.AGENT_NAME),
    }
    return span.operation, about.get(span.operation)


def _said(events: list[tuple[str, dict[str, Any]]]) -> str | None:
    """Return which message began an interaction; one that a notification began has none."""
    key = names.USER_MESSAGE_INTERACTION.name
    return next((attributes[key] for _, attributes in events if key in attributes), None)


def _compare_place(result: Comparison, cli: CliSpan, span: Span, own: dict[str, Span]) -> None:
    where = f"{result.session.name}: {cli.name}"
    name = f"{span.operation} {span.target}" if span.target else span.operation
    if name != cli.name:
        result.other_names.append(f"{where} is {name} here")
    above = own.get(cli.parent) if cli.parent is not None else None
    if (above.context.span_id if above is not None else None) == span.parent_id:
        return
    if cli.parent is not None and (result.session.version, cli.operation) in reasons.PARENTS:
        result.explained_parents.append(where)
    else:
        result.other_parents.append(where)


def _compare_tokens(result: Comparison, cli: CliSpan, span: Span) -> None:
    for attribute in TOKENS:
        key = attribute.spellings(result.session.semconv)[0]
        theirs = cli.attributes.get(key)
        if theirs is None or (result.session.version, key) in reasons.TOKENS:
            continue
        result.tokens += 1
        own = span.attributes.get(attribute)
        if own != theirs or type(own) is not int:
            result.other_tokens.append(f"{result.session.name}: {cli.name}: {key} is {theirs}, here {own}")


def _compare_notifications(result: Comparison, cli: CliSpan, span: Span) -> None:
    theirs = [_typed(one.attributes) for one in cli.events if one.name == NOTIFICATION]
    mine = [_typed(_spelled(event.attributes)) for event in span.events if event.name.name == NOTIFICATION]
    if theirs and not any("github.copilot.message" in attributes for attributes in theirs):
        mine = [{key: value for key, value in item.items() if key != "github.copilot.message"} for item in mine]
    result.notifications += len(theirs)
    if theirs != mine:
        result.other_notifications.append(f"{result.session.name}: {cli.name}: {theirs} is {mine} here")


def _spelled(attributes: Attributes) -> dict[str, Any]:
    return {attribute.name: value for attribute, value in attributes.items()}


def _typed(attributes: dict[str, Any]) -> dict[str, tuple[str, Any]]:
    return {key: (type(value).__name__, value) for key, value in attributes.items()}


def roots_that_end_elsewhere(one: Comparison) -> int:
    """Return how many roots end more than a second before or after the CLI's."""
    return sum(cli.parent is None and abs(cli.end_ns - ours.end_ns) > _ROOT_MS_MAX * 1e6 for cli, ours in one.matched)


def p95(values: Iterable[float]) -> float:
    """Return the value that 95 of 100 do not exceed."""
    ordered = sorted(values)
    return ordered[math.ceil(len(ordered) * 0.95) - 1] if ordered else 0.0
