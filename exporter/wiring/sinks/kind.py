"""The description of a kind of sink, which all code that handles sinks uses."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from config.errors import ConfigError

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from exporter.core.notice import Notice
    from exporter.doctor.facts import SinkProbe
    from exporter.pipeline.feed import Feed
    from exporter.pipeline.record_feed import Endings
    from exporter.pipeline.segment_reader import SegmentReader
    from exporter.sinks.sink import Sink
    from otel.bridge import Tally

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SinkParts:
    """The parts that sinks are built with. `receiver` is the embedded Mission Control, if there is one.

    `installation` is what this state directory is called, so that a receiver can tell it from a copy; `host` is what
    this machine is called.
    """

    reader: "SegmentReader"
    exporter_id: "Callable[[], str]"
    notice: "Callable[[Notice], None]"
    tally: "Tally | None" = None
    receiver: "Starlette | None" = None
    installation: str = ""
    endings: "Endings | None" = None
    host: str = ""


@dataclass(frozen=True, slots=True)
class BuiltSink:
    """A sink, how many sessions are sent at a time, and its feed: of events, or of records made of them."""

    sink: "Sink"
    lanes: int
    feed: "Feed"


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkKind:
    """One kind. `name` and `one` below are the name and the settings of one sink.

    `section` is the table in the settings, and the prefix of the names of its sinks; a kind without a section is built
    if there is a `receiver`. `what` says in the docs what goes there. `build` makes the sinks; `addresses` returns
    their addresses by name, if there is not just the one at `url`. `probe` makes the check of `doctor`; if there is
    none, `unprobed` says why. `secrets` returns the secrets that are sent with requests, and `secret_file` their file.
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
    """Return a secret, or why it cannot be read, which the doctor reports as a finding and not as an error."""
    try:
        return read(), None
    except ConfigError as error:
        return None, str(error)
