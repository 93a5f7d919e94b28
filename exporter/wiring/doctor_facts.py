"""The input of the doctor, from the settings and the environment."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from config.load import Loaded
from config.show import rows
from exporter.doctor.facts import Facts
from exporter.doctor.sinks import VARIABLES
from exporter.wiring import sources
from exporter.wiring.service import health
from exporter.wiring.sinks.registry import probes


def facts_of(loaded: Loaded, status: Mapping[str, Any] | None, mask: Callable[[str], str]) -> Facts:
    """Gather the facts that the doctor starts from; a secret that cannot be read is a finding, not an error."""
    settings = loaded.settings
    homes = sources.homes_in(settings)
    first, *others = homes.found() or [Path(homes.text)]
    return Facts(
        copilot_home=first,
        other_homes=tuple(others),
        state_dir=Path(settings.state_dir),
        open_files=settings.limits.open_files,
        quarantine_bytes=settings.limits.quarantine_bytes,
        line_bytes_max=settings.limits.max_line_bytes,
        sinks=probes(settings),
        sources=tuple(map(sources.facts_of, settings.source)),
        config_file=loaded.file,
        notes=tuple(loaded.notes),
        found_not_used=tuple(loaded.found_not_used),
        cli_telemetry={name: os.environ[name] for name in VARIABLES if name in os.environ},
        rows=tuple((row.path, row.text, row.origin) for row in rows(loaded)),
        status=status,
        home=Path.home(),
        mask=mask,
        service=lambda: _service(loaded),
    )


def _service(loaded: Loaded) -> tuple[str, list[str]] | None:
    found = health(loaded, os.environ)
    return (f"{found[0].path}: {found[0].text}", found[1]) if found is not None else None
