"""Names that files and sinks have, in one place because several parts must agree on them."""

import re
from collections.abc import Mapping
from typing import Final

# The CLI names its sessions by UUIDs; a name with a dot is a lock, a backup or a temporary file.
SESSION_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}")
"""What the id of a session looks like: it becomes a file name."""
MARKS: Final = "marks.db"
QUARANTINE: Final = "quarantine.db"
JOURNALS: Final = "journals"
RECEIVER: Final = "mission_control.db"
LOCAL: Final = "local"
"""The sink that is the embedded Mission Control."""
STORE_HEADER: Final = "session-exporter-store"
"""The header of an answer in which a Mission Control of ours names its store."""
INSTALLATION_HEADER: Final = "session-exporter-installation"
"""The header in which an exporter says to such a Mission Control which installation it is."""


BACKFILL_RUN: Final = "backfill-"
"""What the names of the runs begin with under which `backfill` sends telemetry."""


def sink_name(section: str, configured: str) -> str:
    """Return the name of a sink that the settings call `configured` in a table of theirs."""
    return section if configured == "default" else f"{section}.{configured}"


def otlp_name(configured: str, signal: str = "") -> str:
    """Return the name of an OTLP endpoint that the settings call `configured`, or of the sink that is its signal."""
    name = sink_name("otel", configured)
    return f"{name}:{signal}" if signal else name


def names_of(sink: str) -> set[str]:
    """Return the names that a sink is asked for by: its own, its endpoint's, and `otel` for all OTLP endpoints."""
    endpoint = sink.partition(":")[0]
    return {sink, endpoint} | ({"otel"} if endpoint.startswith("otel.") else set())


def last_error_name(sink_id: int) -> str:
    """Return the name of the fact that is the last error of a sink; it is empty for a healthy sink."""
    return f"last_error:{sink_id}"


def met_name(sink_id: int) -> str:
    """Return the name of the fact that is when a sink was met first, in seconds since 1970."""
    return f"met:{sink_id}"


def off_name(sink_id: int) -> str:
    """Return the name of the fact that is the answer of an endpoint that does not take a signal; else it is empty."""
    return f"off:{sink_id}"


def shown_url(url: str) -> str:
    """Return an address as logs show it: without user, password and parameters."""
    scheme, separator, rest = url.partition("://")
    host, slash, path = rest.partition("?")[0].partition("#")[0].partition("/")
    return f"{scheme}{separator}{host.rpartition('@')[2]}{slash}{path}"


def leaving(addresses: Mapping[str, str]) -> list[str]:
    """Describe the sinks that are on other machines: each name with its host, without secrets."""
    return [
        f"{name} ({url.partition('://')[2].partition('/')[0].rpartition('@')[2]})"
        for name, url in addresses.items()
        if name != LOCAL and not url.startswith("file:")
    ]
