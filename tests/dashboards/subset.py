"""Answers the part of TraceQL and LogQL that the dashboards use, over spans and records as the machines make them.

A query in another shape is an error: this knows what it does not know. It says much about names: an attribute that
exists in the table and is never on such a span is an empty column. What real ones answered to the same queries is in
`answers/`, and a test compares the two.
"""

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from otel.model import LogRecord, Span, Status
from otel.names import SERVICE_NAME, Attribute, Content, Semconv
from tests.otel.written import attributes_of

SERVICE: Final = "github-copilot"
LEVEL: Final = Content.METADATA
_QUERY: Final = re.compile(
    r"\{ (?P<conditions>.+?) \}(?: \| (?P<stage>\w+)\((?P<given>.*?)\)(?: by \((?P<by>.*)\))?)?"
    r" with \(most_recent=true\)"
)
_CONDITION: Final = re.compile(r"(?P<what>[\w.:]+) (?P<sign>=~|!~|!=|=|<|>|>=) (?P<value>.+)")
_SIGNS: Final[Mapping[str, Callable[[object, object], bool]]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "=~": lambda found, pattern: re.fullmatch(str(pattern), str(found)) is not None,
    "!~": lambda found, pattern: re.fullmatch(str(pattern), str(found)) is None,
    "<": lambda found, limit: float(str(found)) < float(str(limit)),
    ">": lambda found, limit: float(str(found)) > float(str(limit)),
    ">=": lambda found, limit: float(str(found)) >= float(str(limit)),
}
_LOG_QUERY: Final = re.compile(r'\{[^}]*\}(?: \| \w+[=~>]+(?:"[^"]*"|\d+))*')
_Facts = dict[str, object]


def spans_found(query: str, spans: list[Span], semconv: Semconv) -> tuple[list[_Facts], list[str]]:
    """What is known of the spans, and their events, that a TraceQL query matches; and what it shows of them."""
    parts = _QUERY.fullmatch(query)
    assert parts is not None, query
    conditions = [_condition(text) for text in parts["conditions"].split(" && ")]
    found = [facts for span in spans for facts in _facts(span, semconv) if all(meets(facts) for meets in conditions)]
    shown = f"{parts['given'] or ''},{parts['by'] or ''}".split(",")
    return found, [name.strip() for name in shown if name.strip()]


def _condition(text: str) -> Callable[[_Facts], bool]:
    """Whether a span meets a condition; Tempo compares a number only with what was sent as a number of that type."""
    parts = _CONDITION.fullmatch(text)
    assert parts is not None, text
    what, meets, value = parts["what"], _SIGNS[parts["sign"]], _value(parts["value"])
    return lambda facts: type(facts.get(what)) is type(value) and meets(facts[what], value)


def _value(text: str) -> object:
    if text.startswith('"'):
        return text[1:-1].replace("\\\\", "\\")
    if seconds := re.fullmatch(r"(\d+)s", text):
        return float(seconds[1])
    if re.fullmatch(r"\d+\.\d+", text):
        return float(text)
    return int(text) if re.fullmatch(r"\d+", text) else text


def _facts(span: Span, semconv: Semconv) -> Iterator[_Facts]:
    """A span by itself and once more with each of its events, as Tempo names what they have."""
    shown = span.target is not None and span.target_content <= LEVEL
    facts: _Facts = {
        "name": f"{span.operation} {span.target}" if shown else span.operation,
        "duration": (span.end_ns - span.start_ns) / 1e9,
        "status": "error" if span.status is Status.ERROR else "unset",
        "span:id": span.context.span_id.hex(),
        f"resource.{SERVICE_NAME.name}": SERVICE,
        **_sent("span.", span.attributes, semconv),
    }
    yield facts
    for event in span.events:
        yield {**facts, "event:name": event.name.name, **_sent("event.", event.attributes, semconv)}


def _sent(prefix: str, attributes: Mapping[Attribute, object], semconv: Semconv = "cli") -> _Facts:
    return {
        prefix + key: value
        for name, value in attributes.items()
        if name.content <= LEVEL
        for key in name.spellings(semconv)
    }


def records_found(query: str, records: list[LogRecord]) -> list[LogRecord]:
    """The records that the LogQL pipeline in a query matches."""
    bare = _LOG_QUERY.search(query)
    assert bare is not None, query
    selector, *filters = bare[0].split(" | ")
    assert selector == f'{{service_name=~"{SERVICE}"}}', selector
    conditions = [_filter(text) for text in filters]
    return [record for record in records if all(meets(record) for meets in conditions)]


def _filter(text: str) -> Callable[[LogRecord], bool]:
    parts = re.fullmatch(r"(?P<what>\w+)(?P<sign>=~|>=|=)(?P<value>.+)", text)
    assert parts is not None, text
    what, meets, value = parts["what"], _SIGNS[parts["sign"]], _value(parts["value"])

    def matches(record: LogRecord) -> bool:
        known = {re.sub(r"\W", "_", name): found for name, found in _sent("", attributes_of(record)).items()}
        known["severity_number"] = record.severity
        return what in known and meets(known[what], value)

    return matches
