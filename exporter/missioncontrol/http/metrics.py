"""The receiver's figures as Prometheus text."""

from collections.abc import Iterable

from exporter.missioncontrol.http.request_intake import Counters
from exporter.missioncontrol.store.queries import StoreTotals


def render(counters: Counters, totals: StoreTotals, *, streams: int, size: int) -> str:
    """Return the exposition; names and labels are ours alone, so nothing of a session is in it."""
    lines: list[str] = []

    def write(name: str, kind: str, meaning: str, samples: Iterable[tuple[str, int]]) -> None:
        full = f"exporter_receiver_{name}"
        lines.append(f"# HELP {full} {meaning}")
        lines.append(f"# TYPE {full} {kind}")
        lines.extend(f"{full}{labels} {value}" for labels, value in samples)

    answered = sorted(counters.requests.items())
    write("requests_total", "counter", "Requests answered.", ((f'{{status="{code}"}}', n) for code, n in answered))
    write("events_stored_total", "counter", "Events stored.", [("", counters.stored)])
    write("event_bytes_stored_total", "counter", "Bytes of events stored.", [("", counters.bytes_stored)])
    write("events_duplicate_total", "counter", "Events that were here already.", [("", counters.duplicates)])
    write("events_rejected_total", "counter", "Events not acceptable.", [("", counters.rejected)])
    write("events_ephemeral_total", "counter", "Ephemeral events passed on, not stored.", [("", counters.ephemeral)])
    write("events_masked_total", "counter", "Events masked here before storing.", [("", counters.masked)])
    write("events_refused_total", "counter", "Events the redactor refused.", [("", counters.refused)])
    write("events", "gauge", "Events held and shown.", [("", totals.events)])
    states = sorted(totals.sessions.items())
    write("sessions", "gauge", "Sessions held.", ((f'{{state="{state}"}}', n) for state, n in states))
    write("streams", "gauge", "Live streams open.", [("", streams)])
    write("store_bytes", "gauge", "Size of the database file.", [("", size)])
    return "\n".join(lines) + "\n"
