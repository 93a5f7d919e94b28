"""`exporter doctor`: checks with a verdict and a remedy each."""

import asyncio
from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from config.errors import ConfigError
from exporter.cli.context import CommandContext
from exporter.cli.output.table import Palette, Tone
from exporter.cli.output.text import columns, count, listing, plain
from exporter.cli.registry import Example, Leaf
from exporter.errors import Exit, SettingsError

_MARKS: Final[dict[str, tuple[str, Tone]]] = {
    "ok": ("ok", "good"),
    "note": ("note", "dim"),
    "warning": ("warning", "warn"),
    "failed": ("FAILED", "bad"),
}


def _build(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--bundle",
        metavar="FILE",
        help="also write a report to send along with a question; holds no content and no secret",
    )
    parser.add_argument(
        "--schema", action="store_true", help="also compare the event types seen with those this version knows"
    )


def _run(invocation: CommandContext) -> int:
    args, out = invocation.args, invocation.out
    bundle = Path(args.bundle).absolute() if args.bundle else None
    from exporter import app

    try:
        answer = asyncio.run(app.doctor(invocation.load(), schema=args.schema, bundle=bundle))
        code = _code(answer["checks"])
    except (ConfigError, SettingsError) as error:
        failed = {"name": "configuration", "verdict": "failed", "detail": str(error), "remedy": error.hint}
        answer, code = {"checks": [failed]}, Exit.CONFIGURATION
    out.result(answer, lambda: doctor_text(answer["checks"], width=out.width, palette=out.palette))
    if bundle and answer.get("bundle"):
        out.notice(f"report written to {plain(answer['bundle'])}")
    return code


def _code(checks: Sequence[Mapping[str, Any]]) -> Exit:
    return Exit.PARTIAL if any(check["verdict"] == "failed" for check in checks) else Exit.DONE


def doctor_text(checks: Sequence[Mapping[str, Any]], *, width: int | None, palette: Palette) -> str:
    """A line per check, its remedy below where there is one, and the sum."""
    wide = max((columns(plain(check["name"])) for check in checks), default=0)
    margin = " " * (9 + wide + 2)
    lines: list[str] = []
    for check in checks:
        mark, tone = _MARKS[check["verdict"]]
        name = plain(check["name"])
        head = f"{palette.paint(mark, tone)}{' ' * (9 - len(mark))}{name}{' ' * (wide - columns(name) + 2)}"
        first, *more = _wrapped(plain(check.get("detail") or ""), width, len(margin))
        lines += [f"{head}{first}".rstrip(), *(margin + line for line in more)]
        if check.get("remedy") and check["verdict"] != "ok":
            first, *more = _wrapped(f"-> {plain(check['remedy'])}", width, len(margin))
            lines += [margin + palette.paint(line, "strong") for line in (first, *more)]
    return "\n".join([*lines, "", _sum(checks)])


def _wrapped(text: str, width: int | None, margin: int) -> list[str]:
    if width is None or columns(text) <= width - margin:
        return [text]
    from textwrap import wrap

    return wrap(text, max(20, width - margin), break_on_hyphens=False) or [""]


def _sum(checks: Sequence[Mapping[str, Any]]) -> str:
    verdicts = [check["verdict"] for check in checks]
    found = [
        (verdicts.count("failed"), "problem"),
        (verdicts.count("warning"), "warning"),
        (verdicts.count("note"), "note"),
    ]
    named = [count(amount, noun) for amount, noun in found if amount]
    return f"{count(len(checks), 'check')}: {listing(named) if named else 'all is well'}."


LEAVES = {
    "doctor": Leaf(
        description=(
            "Checks paths, permissions, versions, configuration, sinks, marks, the clock and file watching, and says "
            "what to do about each problem. Ends with 4 when a check failed."
        ),
        examples=(
            Example("exporter doctor", "all checks"),
            Example("exporter doctor --bundle report.zip", "and a report to send along with a question"),
        ),
        build=_build,
        run=_run,
    )
}
