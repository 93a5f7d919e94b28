"""The check of the CLI's own telemetry: what goes to the same place twice is counted twice."""

from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

from exporter.doctor.check import Check, shown_url
from exporter.doctor.facts import Facts
from exporter.doctor.sinks import OtlpProbe

ENABLED: Final = "COPILOT_OTEL_ENABLED"
ENDPOINT: Final = "OTEL_EXPORTER_OTLP_ENDPOINT"
FILE: Final = "COPILOT_OTEL_FILE_EXPORTER_PATH"
VARIABLES: Final = (ENABLED, ENDPOINT, FILE)
_DEFAULT_ENDPOINT: Final = "http://localhost:4318"
_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")


def cli_telemetry(facts: Facts) -> Iterator[Check]:
    """Compare where the CLI sends its own telemetry, as far as this environment tells, with our endpoints."""
    name, given = "CLI telemetry", {key: value for key, value in facts.cli_telemetry.items() if value}
    enabled = given.get(ENABLED, "").strip().lower() in ("true", "1")
    if not (enabled or given.keys() & {ENDPOINT, FILE}):
        yield Check(name, "ok", "off in this environment")
        return
    if FILE in given and ENDPOINT not in given:
        yield Check(name, "ok", "written to a file, so nothing is counted twice")
        return
    endpoint = given.get(ENDPOINT, _DEFAULT_ENDPOINT)
    ours = [one for one in facts.sinks if isinstance(one, OtlpProbe)]
    same = [one.name for one in ours if _place(one.endpoint) == _place(endpoint)]
    detail = f"sent to {shown_url(endpoint)}"
    if same:
        detail += f", where {', '.join(same)} delivers too: tokens are counted twice there"
        remedy = f"start the CLI without {ENDPOINT} and {ENABLED}, or take {', '.join(same)} out of the configuration"
        yield Check(name, "warning", detail, remedy)
    else:
        yield Check(name, "ok", f"{detail}, which is none of our endpoints")


def _place(url: str) -> tuple[str, int]:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return url, 0
    host = "localhost" if host in _LOOPBACK else host
    return host, port or (443 if parts.scheme == "https" else 80)
