"""All kinds of sinks, and what the program asks of all. `tests/wiring/test_sinks.py` fails for an incomplete kind."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from exporter.core.names import LOCAL, sink_name
from exporter.wiring.sinks import archive, embedded, mission_control, otlp
from exporter.wiring.sinks.kind import BuiltSink, SinkKind, SinkParts

if TYPE_CHECKING:
    from config.settings import Settings
    from exporter.doctor.facts import SinkProbe

KINDS: Final = (
    mission_control.KIND,
    embedded.KIND,
    otlp.KIND,
    archive.KIND,
)


def configured(settings: "Settings") -> Iterator[tuple[SinkKind, str, Any]]:
    """Yield the kind, the name and the settings of every configured sink."""
    for kind in KINDS:
        if kind.section:
            yield from ((kind, name, one) for name, one in getattr(settings, kind.section).items())


def sink_names(settings: "Settings") -> list[str]:
    """Return the names of the configured sinks, or that of the embedded Mission Control if there are none."""
    return [sink_name(kind.section, name) for kind, name, _ in configured(settings)] or [LOCAL]


def addresses(settings: "Settings") -> dict[str, str]:
    """Return the address of every configured sink by its name."""
    found: dict[str, str] = {}
    for kind, name, one in configured(settings):
        found |= kind.addresses(name, one) if kind.addresses else {sink_name(kind.section, name): one.url}
    return found


def build_sinks(settings: "Settings", parts: SinkParts) -> Iterator[BuiltSink]:
    """Build the configured sinks, and the embedded one if there is a receiver; raises ConfigError."""
    for kind in KINDS:
        if kind.section:
            for name, one in getattr(settings, kind.section).items():
                yield from kind.build(name, one, parts)
        elif parts.receiver is not None:
            yield from kind.build("", None, parts)


def probes(settings: "Settings") -> "tuple[SinkProbe, ...]":
    """Return the doctor's checks of the configured sinks."""
    found = configured(settings)
    return tuple(kind.probe(sink_name(kind.section, name), one) for kind, name, one in found if kind.probe is not None)


def of_demo(settings: "Settings") -> "Settings":
    """Return the settings of `up --demo`: directories of its own, no sinks and no sources."""
    home = Path(settings.state_dir) / "demo"
    nowhere: dict[str, Any] = {kind.section: {} for kind in KINDS if kind.section}
    return msgspec.structs.replace(
        settings, state_dir=str(home / "state"), copilot_home=str(home / "copilot"), source=(), **nowhere
    )


def table() -> str:
    """Return the table of `docs/sinks.md`."""
    rows = [f"| {f'`[{kind.section}]`' if kind.section else '`local`'} | {kind.what} |" for kind in KINDS]
    return "\n".join(["| sink | what goes there |", "|---|---|", *rows])
