"""The table of parity: one row per session, one for all, and what is not the same."""

from collections import Counter

from tests.parity.compare import Comparison, p95
from tests.parity.reasons import PARENTS, SPANS, TOKENS

_EDGES = (("execute_tool", "start_ns"), ("execute_tool", "end_ns"), ("chat", "start_ns"), ("chat", "end_ns"))
_HEAD = ("session", "version", "spans", "missing", "not derivable", "parents", "tokens", "notifications",
         "tool start", "tool end", "chat start", "chat end", "ours")  # fmt: skip


def table(comparisons: list[Comparison]) -> str:
    """Return the table as text; times are p95 in milliseconds."""
    rows = [_HEAD, *map(_row, comparisons), _total(comparisons)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([*lines, "", *_notes(comparisons)])


def _row(one: Comparison) -> tuple[str, ...]:
    explained = len(one.explained_parents)
    parents = f"{len(one.matched) - len(one.other_parents) - explained}/{len(one.matched)}"
    return (
        one.session.name,
        one.session.version,
        f"{len(one.matched)}/{len(one.matched) + len(one.missing)}",
        str(len(one.missing)),
        str(len(one.underivable)),
        parents + (f" +{explained} explained" if explained else ""),
        f"{one.tokens - len(one.other_tokens)}/{one.tokens}",
        f"{one.notifications}, {len(one.other_notifications)} differ",
        *(f"{p95(one.apart_ms(*edge)):.1f}" for edge in _EDGES),
        str(len(one.ours)),
    )


def _total(all_of_them: list[Comparison]) -> tuple[str, ...]:
    def count(name: str) -> int:
        return sum(len(getattr(one, name)) for one in all_of_them)

    matched, explained = count("matched"), count("explained_parents")
    tokens = sum(one.tokens for one in all_of_them)
    times = [[apart for one in all_of_them for apart in one.apart_ms(*edge)] for edge in _EDGES]
    return (
        "all",
        "",
        f"{matched}/{matched + count('missing')}",
        str(count("missing")),
        str(count("underivable")),
        f"{matched - count('other_parents') - explained}/{matched}" + (f" +{explained} explained" if explained else ""),
        f"{tokens - count('other_tokens')}/{tokens}",
        f"{sum(one.notifications for one in all_of_them)}, {count('other_notifications')} differ",
        *(f"{p95(values):.1f}" for values in times),
        str(count("ours")),
    )


def _why(one: Comparison, where: str) -> str:
    return PARENTS.get((one.session.version, where.split(": ")[1].split(maxsplit=1)[0]), SPANS["(cut)"])


def _notes(comparisons: list[Comparison]) -> list[str]:
    reasons = Counter(reason for one in comparisons for _, reason in one.underivable)
    notes = [f"not derivable: {reason} ({count}): {SPANS[reason]}" for reason, count in sorted(reasons.items())]
    for one in comparisons:
        notes += [f"missing: {one.session.name}: {span.name}" for span in one.missing]
        notes += [f"other parent, explained: {where}: {_why(one, where)}"
                  for where in one.explained_parents]  # fmt: skip
        notes += [f"other parent: {where}" for where in one.other_parents]
        notes += [f"other name: {where}" for where in one.other_names]
        notes += [f"other tokens: {where}" for where in one.other_tokens]
        notes += [f"other notification: {where}" for where in one.other_notifications]
    old = [one for one in comparisons if one.session.version == "1.0.48"]
    return notes + ([f"no tokens: {key}: {reason}" for (_, key), reason in TOKENS.items()] if old else [])
