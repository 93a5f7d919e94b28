"""What the doctor is told: settings, secrets and variables, because it reads neither configuration nor environment."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class MissionControlFacts:
    """A configured Mission Control. `token` is what would be sent; `token_fault` says why it cannot be read."""

    name: str
    url: str
    token: str | None = field(default=None, repr=False)
    token_file: Path | None = None
    token_fault: str | None = None
    certificate_file: Path | None = None


@dataclass(frozen=True, slots=True)
class OtlpFacts:
    """A configured OTLP endpoint. `headers` are what would be sent; `headers_fault` says why they cannot be read."""

    name: str
    endpoint: str
    protocol: str = "http/protobuf"
    append_path: bool = True
    signals: tuple[str, ...] = ("traces",)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    headers_file: Path | None = None
    headers_fault: str | None = None
    certificate_file: Path | None = None
    client_certificate_file: Path | None = None
    client_key_file: Path | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything the doctor starts from.

    `cli_telemetry` holds the variables named in `telemetry.VARIABLES` that are set. `rows` are the settings in force,
    secrets masked already (path, value, origin). `status` is the running daemon's answer to `status`, None without
    one. `mask` is applied to every text of a report.
    """

    copilot_home: Path
    state_dir: Path
    open_files: int
    quarantine_bytes: int
    line_bytes_max: int
    mission_controls: tuple[MissionControlFacts, ...] = ()
    otlp: tuple[OtlpFacts, ...] = ()
    sources: tuple[str, ...] = ()
    config_file: Path | None = None
    notes: tuple[str, ...] = ()
    found_not_used: tuple[str, ...] = ()
    cli_telemetry: Mapping[str, str] = field(default_factory=dict)
    rows: tuple[tuple[str, str, str], ...] = ()
    status: Mapping[str, Any] | None = None
    home: Path | None = None
    mask: Callable[[str], str] = str
