"""What an event means to the model, the screen, telemetry and storage.

A pure function of plain values, for telemetry as well as for the API and pages. The table has the usual meaning of a
type, for most types from `projection.toml`; exit codes, denials and failures are read from the data. Nothing raises:
unknown types and data of any shape have a projection too.
"""

import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias

Data: TypeAlias = Mapping[str, object]

DEBUG: Final = 5
INFO: Final = 9
WARN: Final = 13
ERROR: Final = 17


class Projection(NamedTuple):
    """What one event means.

    `model_visible`: the model is given its text, now or when the session is replayed. `ui_visible`: a person following
    the session is shown something. `telemetry`: it takes part in spans, span events or metrics, not only in logs.
    `durable`: it is kept; false for what the envelope calls ephemeral. `severity`: OTLP's number. `category` and `url`:
    which sort of message it is and where it sends the reader, for the types that say so.
    """

    model_visible: bool
    ui_visible: bool
    telemetry: bool
    durable: bool
    severity: int
    category: str | None = None
    url: str | None = None


def project(event_type: str, data: Data | None = None, ephemeral: bool = False) -> Projection:
    """Return what an event of this type with this data means; `ephemeral` is the flag of its envelope."""
    row = TABLE.get(event_type, UNKNOWN)
    facts = data if isinstance(data, Mapping) else _NOTHING
    category = _text(facts.get(row.category)) if row.category else None
    if event_type == NOTIFICATION:
        category = notification_type(facts)
    return Projection(
        model_visible=row.model and not (event_type == NOTIFICATION and category == INSTRUCTION),
        ui_visible=row.screen,
        telemetry=row.telemetry,
        durable=not ephemeral,
        severity=row.severity_of(facts) if row.severity_of else row.severity,
        category=category,
        url=_text(facts.get("url")) if row.category else None,
    )


def is_known(event_type: str) -> bool:
    """Whether the table says anything about this type."""
    return event_type in TABLE


def notification_type(data: Data) -> str | None:
    """Return which kind of system notification this is, exactly as it is spelt there."""
    kind = data.get("kind")
    return _text(kind.get("type")) if isinstance(kind, Mapping) else None


NOTIFICATION: Final = "system.notification"
# The one kind whose text the model is not given: the instructions themselves reach it another way.
INSTRUCTION: Final = "instruction_discovered"
_FAILED: Final = ("failed", "error")
_NOTHING: Final[Data] = MappingProxyType({})


class ProjectionRow(NamedTuple):
    """What the events of one type are; `severity_of` finds the severity when it depends on the data."""

    model: bool
    screen: bool
    telemetry: bool
    severity: int
    category: str = ""
    severity_of: Callable[[Data], int] | None = None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _notification(data: Data) -> int:
    kind = data.get("kind")
    if not isinstance(kind, Mapping):
        return INFO
    if kind.get("status") in _FAILED:
        return ERROR
    code = kind.get("exitCode")
    return WARN if isinstance(code, int | float) and code != 0 else INFO


def _success(otherwise: int) -> Callable[[Data], int]:
    return lambda data: ERROR if data.get("success") is False else otherwise


def _decision(data: Data) -> int:
    result = data.get("result")
    kind = result.get("kind") if isinstance(result, Mapping) else result
    return WARN if isinstance(kind, str) and kind.startswith("denied") else INFO


def _ending(data: Data) -> int:
    return ERROR if data.get("shutdownType") == "error" else INFO


def _rows() -> Iterator[tuple[str, ProjectionRow]]:
    for columns in tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8")).values():
        types = columns.pop("types")
        yield from dict.fromkeys(types, ProjectionRow(**columns)).items()


_CONVERSATION: Final = ProjectionRow(model=True, screen=True, telemetry=True, severity=INFO)
_SHOWN: Final = ProjectionRow(model=False, screen=True, telemetry=True, severity=INFO)
_MACHINE: Final = ProjectionRow(model=False, screen=False, telemetry=True, severity=DEBUG)

UNKNOWN: Final = _MACHINE
TABLE: Final[Mapping[str, ProjectionRow]] = MappingProxyType(
    {
        NOTIFICATION: _CONVERSATION._replace(severity_of=_notification),
        "session.info": _SHOWN._replace(category="infoType"),
        "session.warning": _SHOWN._replace(severity=WARN, category="warningType"),
        "session.error": _SHOWN._replace(severity=ERROR, category="errorType"),
        "abort": _SHOWN._replace(severity=WARN),
        "hook.end": _MACHINE._replace(severity_of=_success(DEBUG)),
        "permission.completed": _SHOWN._replace(severity_of=_decision),
        "session.compaction_complete": _CONVERSATION._replace(severity_of=_success(INFO)),
        "session.shutdown": _SHOWN._replace(severity_of=_ending),
        "subagent.failed": _SHOWN._replace(severity=ERROR),
        "tool.execution_complete": _CONVERSATION._replace(severity_of=_success(INFO)),
        "assistant.message": _CONVERSATION._replace(severity=DEBUG),
        **dict(_rows()),
    }
)
