"""What the doctor starts from: settings, secrets and variables; it reads neither configuration nor environment."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from exporter.doctor.check import Probe


def _no_service() -> None:
    return None


class SinkProbe(Protocol):
    """What looks at a configured sink: whether it is reachable, takes what is sent, and is private on the way."""

    @property
    def name(self) -> str: ...

    async def probe(self) -> Probe: ...


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """A source that the settings name, what it sees and what not, and the package that it misses, if any."""

    url: str
    sees: str
    sees_not: str
    is_server: bool = False
    missing: str = ""


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything the doctor starts from; `other_homes` are followed beside `copilot_home`.

    `cli_telemetry` holds the variables named in `sinks.VARIABLES` that are set. `rows` are the settings in force,
    secrets masked already (path, value, origin). `status` is the running daemon's answer to `status`, None without
    one. `mask` is applied to every text of a report. `service` looks at the installed service: what it is, and what is
    wrong with it; None without one.
    """

    copilot_home: Path
    state_dir: Path
    open_files: int
    quarantine_bytes: int
    line_bytes_max: int
    other_homes: tuple[Path, ...] = ()
    sinks: tuple[SinkProbe, ...] = ()
    sources: tuple[SourceFacts, ...] = ()
    config_file: Path | None = None
    notes: tuple[str, ...] = ()
    found_not_used: tuple[str, ...] = ()
    cli_telemetry: Mapping[str, str] = field(default_factory=dict)
    rows: tuple[tuple[str, str, str], ...] = ()
    status: Mapping[str, Any] | None = None
    home: Path | None = None
    mask: Callable[[str], str] = str
    service: Callable[[], tuple[str, list[str]] | None] = _no_service
