"""TraceQL and LogQL: how the names of the table are spelt there, and the sets that several dashboards ask for."""

import re
from typing import Final

from otel.names import AGENT_INSTANCE_ID, CONVERSATION_ID, EVENT_TYPE, SERVICE_NAME, SUMMARY, TURN_COUNT, Attribute

SERVICE: Final = "$service"
SESSION: Final = "$session"


def span(attribute: Attribute) -> str:
    """An attribute of a span, in TraceQL."""
    return f"span.{attribute.name}"


def event(attribute: Attribute) -> str:
    """An attribute of a span event, in TraceQL."""
    return f"event.{attribute.name}"


def spans(*conditions: str) -> str:
    """The spans of the chosen service that satisfy every condition, in TraceQL."""
    return "{ " + " && ".join([f'resource.{SERVICE_NAME.name} =~ "{SERVICE}"', *conditions]) + " }"


def session_spans(*conditions: str) -> str:
    """The same within the chosen session."""
    return spans(f'{span(CONVERSATION_ID)} = "{SESSION}"', *conditions)


def named(operation: str) -> str:
    """A condition: the span is one of this operation, whatever its target."""
    return f'name =~ "{operation}.*"'


def not_named(operation: str) -> str:
    """A condition: the span is of another operation."""
    return f'name !~ "{operation}.*"'


IS_MAIN_AGENT: Final = f"{span(TURN_COUNT)} >= 0"
"""A condition on spans of agents; with the GenAI conventions a main agent may be below the span of a workflow."""

IS_SUBAGENT: Final = f'{span(AGENT_INSTANCE_ID)} != ""'


def selected(*attributes: Attribute) -> str:
    """The attributes of spans that a table shall show."""
    return ", ".join(span(each) for each in attributes)


def field(attribute: Attribute) -> str:
    """An attribute of a log record, as Loki keeps it."""
    return re.sub(r"\W", "_", attribute.name)


def records(*conditions: str) -> str:
    """The log records of the chosen service that satisfy every condition, in LogQL."""
    return " | ".join([f'{{{field(SERVICE_NAME)}=~"{SERVICE}"}}', *conditions])


def session_records(*conditions: str) -> str:
    """The same within the chosen session."""
    return records(f'{field(CONVERSATION_ID)}="{SESSION}"', *conditions)


def is_type(pattern: str) -> str:
    """A condition on log records: the event's type matches."""
    return f'{field(EVENT_TYPE)}=~"{pattern}"'


def readable(query: str) -> str:
    """The records as lines that a person reads: the type of the event, then what it says."""
    kind, said = field(EVENT_TYPE), field(SUMMARY)
    shown = "{{ printf `%-28s` .KIND }} {{ if .SAID }}{{ .SAID }}{{ else }}{{ __line__ }}{{ end }}"
    return f'{query} | line_format "{shown.replace("KIND", kind).replace("SAID", said)}"'
