"""The page on redaction and health: what was masked, what is held back, who uploads, and what the store holds."""

from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from exporter.missioncontrol.pages.markup import counted, duration, escape, figure, moment, size
from exporter.missioncontrol.pages.page import fragment, is_fragment, page
from exporter.missioncontrol.receiver import receiver_of
from exporter.missioncontrol.store import queries
from exporter.missioncontrol.store.amounts import amount
from exporter.missioncontrol.store.port import Database
from exporter.missioncontrol.store.redactions import redactions
from exporter.missioncontrol.store.retention import Retention

_DAYS: Final = 14
_RULES: Final = 40
_ROWS_MAX: Final = 2000
_SHADES: Final = 5
_REASONS_MAX: Final = 20


async def health_page(request: Request) -> Response:
    """Show the figures; for the script only what changes."""
    receiver = receiver_of(request)

    def read(database: Database) -> tuple[Any, ...]:
        masked, _ = redactions(database, ["rule", "day"], limit=_ROWS_MAX, offset=0)
        return masked, queries.exporters(database), queries.totals(database), database.used_bytes()

    masked, exporters, totals, used = await receiver.read(read)
    counters = receiver.counters
    listed = (
        f'<div data-part="list"><section><h2>Masked, by rule and day</h2>{_masked(masked)}</section>'
        f"<section><h2>Exporters</h2>{_exporters(exporters)}</section>"
        f"<section><h2>Quarantine</h2>{_quarantine(exporters)}</section>"
        f"<section><h2>Storage and retention</h2>{_facts(_store(used, totals, receiver.retention))}</section>"
        f"<section><h2>Received since the start</h2>{_facts(_received(counters))}</section></div>"
    )
    if is_fragment(request):
        return fragment(request, listed)
    return page(
        request,
        "Redaction & health",
        f"<h1>Redaction &amp; health</h1>{listed}",
        here="/health",
        body=' data-live="list"',
    )


def _masked(rows: list[dict[str, Any]]) -> str:
    if not rows:
        return '<p class="quiet empty">Nothing was masked yet: no secret was found in what came in.</p>'
    days = sorted({row["day"] for row in rows}, reverse=True)[:_DAYS]
    sums: dict[str, int] = {}
    cells: dict[tuple[str, str], int] = {}
    for row in rows:
        sums[row["rule"]] = sums.get(row["rule"], 0) + row["count"]
        cells[row["rule"], row["day"]] = row["count"]
    rules = sorted(sums, key=lambda rule: (-sums[rule], rule))[:_RULES]
    most = max(1, *cells.values())
    head = "".join(f'<th scope="col">{escape(day[5:])}</th>' for day in days)
    body = "".join(
        f'<tr><th scope="row"><code>{escape(rule)}</code></th><td class="number"><b>{sums[rule]:,}</b></td>'
        + "".join(_cell(cells.get((rule, day), 0), most) for day in days)
        + "</tr>"
        for rule in rules
    )
    return (
        '<div class="wide" tabindex="0" role="region" aria-label="Masked by rule and day"><table class="matrix"><thead>'
        "<tr>"
        f'<th scope="col">Rule</th><th scope="col">All</th>{head}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def _cell(count: int, most: int) -> str:
    shade = -(-count * _SHADES // most) if count else 0
    return f'<td class="number shade-{shade}">{count or ""}</td>'


def _exporters(exporters: list[dict[str, Any]]) -> str:
    if not exporters:
        return '<p class="quiet empty">No exporter has reported yet; each does every ten seconds.</p>'
    rows = []
    for report in exporters:
        sinks = report.get("sinks")
        listed = [sink for sink in sinks if isinstance(sink, dict)] if isinstance(sinks, list) else []
        lags = "".join(_sink(sink) for sink in listed[:20])
        rows.append(
            f'<tr><th scope="row">{escape(report.get("host") or report["id"])}'
            f'<span class="quiet">{escape(report["id"])}</span></th>'
            f'<td data-name="Version">{escape(report.get("version") or "")}</td>'
            f'<td data-name="Sinks"><ul>{lags}</ul></td>'
            f'<td data-name="Quarantined">{figure(report.get("quarantined"))}</td>'
            f'<td data-name="Last report">{moment(report.get("reported_at"))}</td></tr>'
        )
    names = "".join(
        f'<th scope="col">{name}</th>' for name in ("Exporter", "Version", "Sinks", "Quarantined", "Last report")
    )
    return f'<table class="sessions"><thead><tr>{names}</tr></thead><tbody>{"".join(rows)}</tbody></table>'


def _sink(sink: dict[str, Any]) -> str:
    seconds, events, tries = (amount(sink.get(name)) for name in ("lag_seconds", "lag_events", "retries"))
    lag = f"{duration(seconds)} behind" if seconds is not None and seconds >= 1 else "up to date"
    waiting = f", {counted(events, 'event')}" if events else ""
    retries = f", {counted(tries, 'retry', 'retries')}" if tries else ""
    error = f'<span class="error">{escape(sink["last_error"])}</span>' if sink.get("last_error") else ""
    return f"<li><b>{escape(sink.get('name') or '')}</b> {lag}{waiting}{retries} {error}</li>"


def _quarantine(exporters: list[dict[str, Any]]) -> str:
    total = sum(amount(report.get("quarantined")) or 0 for report in exporters)
    if not total:
        return '<p class="quiet">Nothing is held back.</p>'
    rows = "".join(
        f'<tr><th scope="row">{escape(reason.replace("_", " "))}</th><td class="number" data-name="Events">'
        f'{figure(count)}</td><td data-name="Exporter">{escape(report.get("host") or report["id"])}</td></tr>'
        for report in exporters
        if isinstance(told := report.get("quarantine"), dict)
        for reason, count in list(told.items())[:_REASONS_MAX]
    )
    names = "".join(f'<th scope="col">{name}</th>' for name in ("Reason", "Events", "Exporter"))
    table = f'<table class="sessions"><thead><tr>{names}</tr></thead><tbody>{rows}</tbody></table>' if rows else ""
    return (
        f"<p><b>{figure(total)}</b> {'event is' if total == 1 else 'events are'} held back where"
        f" {'it was read; it' if total == 1 else 'they were read; they'} never left that machine. There,"
        f" <code>exporter quarantine list</code> tells each with its reason.</p>{table}"
    )


def _store(size_bytes: int, totals: queries.StoreTotals, kept: Retention) -> list[tuple[str, str]]:
    return [
        ("Sessions", figure(sum(totals.sessions.values()))),
        ("Events", figure(totals.events)),
        ("Space used", size(size_bytes)),
        ("Kept for", counted(kept.days_max, "day") if kept.days_max is not None else "ever"),
        ("Kept up to", size(kept.bytes_max) if kept.bytes_max is not None else "what the disk holds"),
    ]


def _received(counters: Any) -> list[tuple[str, str]]:
    names = ("stored", "duplicates", "rejected", "ephemeral", "masked", "refused")
    shown = (
        "Stored",
        "Here already",
        "Not acceptable",
        "Passed on live",
        "Masked on arrival",
        "Refused by the redactor",
    )
    return [(name, figure(getattr(counters, field))) for field, name in zip(names, shown, strict=True)]


def _facts(facts: list[tuple[str, str]]) -> str:
    return f'<dl class="facts">{"".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in facts)}</dl>'
