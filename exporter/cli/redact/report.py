"""`exporter redact report`: what was masked, by rule, session and day."""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from exporter.cli.command import CommandContext, command, option
from exporter.cli.output.table import Cell, Column, TerminalView, table
from exporter.cli.output.text import count, number, plain
from exporter.cli.session_ids import shown_ids
from exporter.cli.values import When

if TYPE_CHECKING:
    from exporter.state.redaction_counts import Counted

_COUNT: Final = Column("REDACTED", lambda row: number(row["count"]), right=True)
_RULES_SHOWN_MAX: Final = 3


@command()
@option("--since", type=When(), help="from that day on (UTC, time of the events): 7d, yesterday or an ISO time")
def report(context: CommandContext, since: datetime | None) -> int:
    """Counts the secrets redacted in delivered events by rule, session and day. Never shows a secret.

    What was delivered to several sinks counts once.

    Examples:
    exporter redact report  # everything so far
    exporter redact report --since 7d --json  # the last week, for scripts
    """
    from exporter import app

    masked = app.masked(context.load(sessions=True).settings)
    first_day = since.astimezone(UTC).strftime("%Y-%m-%d") if since else ""
    found = report_of([one for one in masked.counts if one.day >= first_day])
    answer = {"since": first_day or None, **found, "masked_on_arrival": masked.on_arrival}
    return context.report(answer, lambda view: report_text(answer, view))


def report_of(counts: "Sequence[Counted]") -> dict[str, Any]:
    """The totals by rule (the most frequent first), by session and by day (the latest first)."""
    rules: Counter[str] = Counter()
    for one in counts:
        rules[one.rule] += one.times
    return {
        "total": rules.total(),
        "rules": [{"rule": rule, "count": times} for rule, times in rules.most_common()],
        "sessions": sorted(_by("session", counts), key=lambda row: (-row["count"], row["session"])),
        "days": sorted(_by("day", counts), key=itemgetter("day"), reverse=True),
    }


def _by(name: str, counts: "Sequence[Counted]") -> list[dict[str, Any]]:
    found: dict[str, Counter[str]] = {}
    for one in counts:
        found.setdefault(getattr(one, name), Counter())[one.rule] += one.times
    return [{name: key, "count": rules.total(), "rules": dict(rules)} for key, rules in found.items()]


def report_text(report: dict[str, Any], view: TerminalView) -> str:
    """The total, then a table each by rule, session and day."""
    span = f" since {report['since']}" if report["since"] else ""
    others = []
    if on_arrival := report["masked_on_arrival"]:
        others.append(f"The local Mission Control redacted {count(on_arrival, 'event')} received from others.")
    if not report["total"]:
        return "\n".join([f"Nothing was redacted{span or ' so far'}.", *others])
    where = f"{count(len(report['sessions']), 'session')}, {count(len(report['days']), 'day')}"
    blocks = [
        view.palette.paint(f"{count(report['total'], 'secret')} redacted{span} ({where}).", "strong"),
        table((Column("RULE", "rule", flex=True), _COUNT), report["rules"], view),
    ]
    names = shown_ids(report["sessions"], view)
    rules = Column("RULES", lambda row: Cell(_most_frequent(row["rules"]), "dim"), flex=True)
    sessions = Column("SESSION", lambda row: names[row["session"]])
    blocks.append(table((sessions, _COUNT, rules), report["sessions"], view))
    blocks.append(table((Column("DAY", "day"), _COUNT, rules), report["days"], view))
    return "\n\n".join([*blocks, *others])


def _most_frequent(rules: dict[str, int]) -> str:
    most = Counter(rules).most_common()
    some = ", ".join(f"{plain(rule)} {number(times)}" for rule, times in most[:_RULES_SHOWN_MAX])
    return f"{some}, …" if len(most) > _RULES_SHOWN_MAX else some
