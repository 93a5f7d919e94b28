"""What a kind of sink says of itself, so that everything that deals with sinks knows it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from config.errors import ConfigError

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from exporter.core.notice import Notice
    from exporter.doctor.facts import SinkProbe
    from exporter.pipeline.feed import Feed
    from exporter.pipeline.segment_reader import SegmentReader
    from exporter.sinks.sink import Sink
    from otel.bridge import Tally

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SinkParts:
    """The parts that sinks are built with. `receiver` is the embedded Mission Control, if there is one."""

    reader: "SegmentReader"
    exporter_id: "Callable[[], str]"
    notice: "Callable[[Notice], None]"
    tally: "Tally | None" = None
    receiver: "Starlette | None" = None


@dataclass(frozen=True, slots=True)
class BuiltSink:
    """A sink, how many sessions it is sent at a time, and what it is sent: events, or records made of them."""

    sink: "Sink"
    lanes: int
    feed: "Feed"


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkKind:
    """One kind. `one` below is what the settings say of one such sink, `name` what they call it.

    `section` is the table of the settings, and what the names of its sinks begin with; a kind without one is not set
    but built where there is a `receiver`. `what` says in the docs what goes there. `build` makes the sinks, and
    `addresses` are theirs by their names, where there is not just the one at its `url`. `probe` is what `doctor` does;
    where there is none, `unprobed` says why. `secrets` are those that are sent with requests, and `secret_file` the
    file that they stand in.
    """

    section: str
    what: str
    build: Callable[[str, Any, SinkParts], Iterable[BuiltSink]]
    addresses: Callable[[str, Any], dict[str, str]] | None = None
    probe: "Callable[[str, Any], SinkProbe] | None" = None
    unprobed: str = ""
    secrets: Callable[[Any], Iterable[str]] = lambda one: ()
    secret_file: Callable[[Any], str | None] = lambda one: None


def or_fault(read: Callable[[], T]) -> tuple[T | None, str | None]:
    """Return a secret, or why it cannot be read: to the doctor that is a finding, not an error."""
    try:
        return read(), None
    except ConfigError as error:
        return None, str(error)
