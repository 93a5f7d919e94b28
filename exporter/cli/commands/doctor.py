"""`exporter doctor`: checks with a verdict and a remedy each."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from config.errors import ConfigError
from exporter.cli.command import CommandContext, command, option
from exporter.cli.output.table import TerminalView, Tone
from exporter.cli.output.text import columns, count, listing, plain
from exporter.cli.values import FILE
from exporter.errors import Exit, SettingsError

_MARKS: Final[dict[str, tuple[str, Tone]]] = {
    "ok": ("ok", "good"),
    "note": ("note", "dim"),
    "warning": ("warning", "warn"),
    "failed": ("FAILED", "bad"),
}
_MARK_WIDTH: Final = 9


@command()
@option("--bundle", type=FILE, help="also write a report for a support request; contains no content and no secrets")
@option("--schema", is_flag=True, help="also check for event types unknown to this version")
def doctor(context: CommandContext, bundle: str | None, schema: bool) -> int:
    """Checks paths, permissions, versions, configuration, sinks, marks, clock and file watching.

    Suggests a remedy for each problem. Exits with 4 if a check failed.

    Examples:
    exporter doctor  # all checks
    exporter doctor --bundle report.zip  # and write a report for a support request
    """
    from exporter import app

    target = Path(bundle).absolute() if bundle else None
    try:
        answer = asyncio.run(app.doctor(context.load(secrets=False), schema=schema, bundle=target))
        code = Exit.PARTIAL if any(check["verdict"] == "failed" for check in answer["checks"]) else Exit.DONE
    except (ConfigError, SettingsError) as error:
        failed = {"name": "configuration", "verdict": "failed", "detail": str(error), "remedy": error.hint}
        answer, code = {"checks": [failed]}, Exit.CONFIGURATION
    context.report(answer, lambda view: doctor_text(answer["checks"], view))
    if target and answer.get("bundle"):
        context.out.notice(f"report written to {plain(answer['bundle'])}")
    return code


def doctor_text(checks: Sequence[Mapping[str, Any]], view: TerminalView) -> str:
    """A line per check, its remedy below where there is one, and the sum."""
    wide = max((columns(plain(check["name"])) for check in checks), default=0)
    margin = " " * (_MARK_WIDTH + wide + 2)
    paint = view.palette.paint
    lines: list[str] = []
    for check in checks:
        mark, tone = _MARKS[check["verdict"]]
        name = plain(check["name"])
        head = f"{paint(mark, tone)}{' ' * (_MARK_WIDTH - len(mark))}{name}{' ' * (wide - columns(name) + 2)}"
        first, *more = _wrapped(check.get("detail") or "", view, margin)
        lines += [f"{head}{first}".rstrip(), *(margin + line for line in more)]
        if check.get("remedy") and check["verdict"] != "ok":
            lines += [margin + paint(line, "strong") for line in _wrapped(f"-> {check['remedy']}", view, margin)]
    return "\n".join([*lines, "", _sum(checks)])


def _wrapped(said: str, view: TerminalView, margin: str) -> list[str]:
    text = plain(said)
    if view.width is None or columns(text) <= view.width - len(margin):
        return [text]
    from textwrap import wrap

    return wrap(text, max(20, view.width - len(margin)), break_on_hyphens=False) or [""]


def _sum(checks: Sequence[Mapping[str, Any]]) -> str:
    verdicts = [check["verdict"] for check in checks]
    nouns = {"failed": "problem", "warning": "warning", "note": "note"}
    named = [count(amount, noun) for verdict, noun in nouns.items() if (amount := verdicts.count(verdict))]
    return f"{count(len(checks), 'check')}: {listing(named) if named else 'no problems found'}."
