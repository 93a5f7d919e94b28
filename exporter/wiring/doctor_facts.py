"""What the doctor is told, taken from the settings and the environment."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from config.errors import ConfigError
from config.show import rows
from config.token import read_headers, read_token
from exporter.core.names import otlp_name, sink_name
from exporter.doctor.facts import Facts, MissionControlFacts, OtlpFacts
from exporter.doctor.telemetry import VARIABLES

if TYPE_CHECKING:
    from config.load import Loaded
    from config.otel import Otel
    from config.settings import MissionControl


def facts_of(loaded: "Loaded", status: Mapping[str, Any] | None, mask: Callable[[str], str]) -> Facts:
    """Gather everything the doctor starts from; a secret that cannot be read is a fault, not an error."""
    settings = loaded.settings
    return Facts(
        copilot_home=Path(settings.copilot_home),
        state_dir=Path(settings.state_dir),
        open_files=settings.limits.open_files,
        quarantine_bytes=settings.limits.quarantine_bytes,
        line_bytes_max=settings.limits.max_line_bytes,
        mission_controls=tuple(_mission_control(name, one) for name, one in settings.mission_control.items()),
        otlp=tuple(_otlp(name, one) for name, one in settings.otel.items()),
        sources=tuple(one.url for one in settings.source),
        config_file=loaded.file,
        notes=tuple(loaded.notes),
        found_not_used=tuple(loaded.found_not_used),
        cli_telemetry={name: os.environ[name] for name in VARIABLES if name in os.environ},
        rows=tuple((row.path, str(row.value), row.origin) for row in rows(loaded)),
        status=status,
        home=Path.home(),
        mask=mask,
    )


def _mission_control(name: str, one: "MissionControl") -> MissionControlFacts:
    token, fault = None, None
    try:
        token = read_token(one)
    except ConfigError as error:
        fault = str(error)
    return MissionControlFacts(
        sink_name(name), one.url, token, _path(one.token_file), fault, _path(one.certificate_file)
    )


def _otlp(name: str, one: "Otel") -> OtlpFacts:
    headers, fault = {}, None
    try:
        headers = read_headers(one)
    except ConfigError as error:
        fault = str(error)
    return OtlpFacts(
        otlp_name(name),
        one.endpoint,
        one.protocol,
        one.append_path,
        tuple(one.signals),
        headers,
        Path(one.headers_file) if one.headers_file else None,
        fault,
        _path(one.certificate_file),
        _path(one.client_certificate_file),
        _path(one.client_key_file),
    )


def _path(name: str | None) -> Path | None:
    return Path(name) if name else None
