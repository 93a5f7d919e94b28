"""`exporter redact test`: masks what it is given, and says what it found."""

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

import click

from exporter.cli.command import CommandContext, argument, command, option
from exporter.cli.output.output import to_json
from exporter.cli.redact.preview import finding_fields
from exporter.cli.values import FILE
from exporter.errors import Exit, UsageError

if TYPE_CHECKING:
    from exporter.wiring.redact_commands import Format, Outcome

STDIN: Final = "-"
_HEAD_BYTES: Final = 64 * 1024
_REASONS: Final = {
    "not_json": "it is not JSON (for plain text use --format text)",
    "not_utf8": "it is not UTF-8",
    "line_too_long": "it is longer than limits.max_line_bytes",
    "time_budget": "its redaction takes longer than redaction.budget_ms",
    "redactor_failed": "the redactor failed, which is a bug",
}


@command()
@argument("file", type=FILE, default=STDIN, metavar="[FILE]", help="file to redact (default: -, standard input)")
@option(
    "--format",
    type=click.Choice(("jsonl", "text")),
    help="input format (default: jsonl if the name ends in .jsonl or the first lines are JSON objects, else text)",
)
@option("--findings", is_flag=True, help="write findings as JSON lines instead")
@option("--check", is_flag=True, help="exit with 8 if anything is found")
def test(context: CommandContext, file: str, format: "Format | None", findings: bool, check: bool) -> int:
    """Redacts a file or standard input and prints the result, or with --findings what was found.

    A finding has line, event, JSON Pointer, offsets in the decoded text, rule and confidence, never the secret. No file
    is written. Tags are those of this installation if it has a key. Lines that cannot be redacted are left out; the
    exit code is then 4.

    Examples:
    exporter redact test events.jsonl  # the redacted events
    exporter redact test build.log  # any text; - is standard input
    exporter redact test events.jsonl --findings  # the findings as JSON lines
    exporter redact test --check --findings notes.txt  # for scripts: exits with 8 if a secret is found
    """
    from exporter import app

    out, settings = context.out, context.load().settings
    found = refused = False
    with _opened(file) as source:
        if sys.stdin.isatty() and file == STDIN:
            out.notice("reading standard input; press Ctrl-D to end")
        is_file = source is not sys.stdin.buffer
        for outcome in app.mask(settings, source, name=file, format=format):
            found = found or bool(outcome.findings)
            if outcome.refused is not None:
                refused = True
                out.urgent(_refusal(outcome))
            elif findings:
                for line in _findings(outcome):
                    out.write(line)
            else:
                out.write_bytes(outcome.output, flush=not is_file)
        out.write_bytes(b"")
    if found and check:
        return Exit.FINDINGS
    return Exit.PARTIAL if refused else Exit.DONE


def _opened(name: str) -> AbstractContextManager[IO[bytes]]:
    if name == STDIN:
        return nullcontext(sys.stdin.buffer)
    try:
        return Path(name).open("rb", buffering=_HEAD_BYTES)
    except OSError as error:
        said = f"{name} cannot be read: {error.strerror}"
        raise UsageError(said, hint="give a file, or - for standard input") from None


def _findings(outcome: "Outcome") -> Iterator[str]:
    for number, finding in outcome.findings:
        yield to_json({"line": number, "event": outcome.event, **finding_fields(finding)})


def _refusal(outcome: "Outcome") -> str:
    reason = _REASONS.get(outcome.refused or "", outcome.refused)
    if outcome.first == outcome.last:
        return f"line {outcome.first} is not written: {reason}"
    return f"lines {outcome.first} to {outcome.last} are not written: {reason}"
