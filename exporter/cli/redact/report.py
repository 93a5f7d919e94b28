"""`exporter redact report`: what was masked, by rule, session and day."""

from argparse import ArgumentParser
from collections import Counter
from collections.abc import Sequence
from datetime import UTC
from typing import TYPE_CHECKING, Any, Final

from exporter.cli.context import CommandContext
from exporter.cli.output.table import Cell, Column, Palette, table
from exporter.cli.output.text import count, number, plain
from exporter.cli.parser import since
from exporter.cli.registry import Example, Leaf
from exporter.cli.session_ids import short_ids

if TYPE_CHECKING:
    from exporter.state.redaction_counts import Counted

_RULES_SHOWN_MAX: Final = 3


def _build(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--since",
        type=since,
        metavar="WHEN",
        help="only from that day on (the events' own, UTC): 7d, yesterday, an ISO time",
    )


def _run(invocation: CommandContext) -> int:
    from exporter import app

    out, when = invocation.out, invocation.args.since
    masked = app.masked(invocation.load().settings)
    first_day = when.astimezone(UTC).strftime("%Y-%m-%d") if when else ""
    report = report_of([one for one in masked.counts if one.day >= first_day])
    report = {"since": first_day or None, **report, "masked_on_arrival": masked.on_arrival}
    out.result(report, lambda: report_text(report, width=out.width, palette=out.palette))
    return 0


def report_of(counts: "Sequence[Counted]") -> dict[str, Any]:
    """The totals by rule (the most frequent first), by session and by day (the latest first)."""
    rules: Counter[str] = Counter()
    sessions: dict[str, Counter[str]] = {}
    days: dict[str, Counter[str]] = {}
    for one in counts:
        rules[one.rule] += one.times
        sessions.setdefault(one.session, Counter())[one.rule] += one.times
        days.setdefault(one.day, Counter())[one.rule] += one.times
    busiest = sorted(sessions.items(), key=lambda item: (-item[1].total(), item[0]))
    return {
        "total": rules.total(),
        "rules": [{"rule": rule, "count": times} for rule, times in rules.most_common()],
        "sessions": [{"session": one, "count": found.total(), "rules": dict(found)} for one, found in busiest],
        "days": [
            {"day": day, "count": found.total(), "rules": dict(found)}
            for day, found in sorted(days.items(), reverse=True)
        ],
    }


def report_text(report: dict[str, Any], *, width: int | None, palette: Palette) -> str:
    """The total, then a table each by rule, session and day."""
    span = f" since {report['since']}" if report["since"] else ""
    on_arrival = report["masked_on_arrival"]
    others = (
        [f"The Mission Control here masked something in {count(on_arrival, 'event')} that others sent."]
        if on_arrival
        else []
    )
    if not report["total"]:
        return "\n".join([f"Nothing was masked{span or ' so far'}.", *others])
    names = short_ids(row["session"] for row in report["sessions"]) if width else {}
    where = f"{count(len(report['sessions']), 'session')}, {count(len(report['days']), 'day')}"
    total = f"{count(report['total'], 'secret')} masked{span} ({where})."
    by_rule = [(Cell(plain(row["rule"])), Cell(number(row["count"]))) for row in report["rules"]]
    blocks = [
        palette.paint(total, "strong"),
        table((Column("RULE", flex=True), Column("MASKED", right=True)), by_rule, width=width, palette=palette),
    ]
    for noun in ("session", "day"):
        heads = (Column(noun.upper()), Column("MASKED", right=True), Column("RULES", flex=True))
        rows = [
            (
                Cell(plain(names.get(row[noun], row[noun]))),
                Cell(number(row["count"])),
                Cell(_most_frequent(row["rules"]), "dim"),
            )
            for row in report[f"{noun}s"]
        ]
        blocks.append(table(heads, rows, width=width, palette=palette))
    return "\n\n".join([*blocks, *others])


def _most_frequent(rules: dict[str, int]) -> str:
    most = Counter(rules).most_common()
    some = ", ".join(f"{plain(rule)} {number(times)}" for rule, times in most[:_RULES_SHOWN_MAX])
    return f"{some}, …" if len(most) > _RULES_SHOWN_MAX else some


LEAVES = {
    "redact report": Leaf(
        description=(
            "What was masked in what was delivered, by rule, session and day, with totals: counts, never a secret. "
            "What went to several sinks counts once."
        ),
        examples=(
            Example("exporter redact report", "everything so far"),
            Example("exporter redact report --since 7d --json", "the last week, for scripts"),
        ),
        build=_build,
        run=_run,
    )
}
