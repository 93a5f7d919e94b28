"""The manual page and the completions of `exporter`, made from its commands: `python -m deploy.packages.manual`.

They stand in `share/` here, because a wheel is made of files that are there; a test compares them with the commands.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click
from click.shell_completion import get_completion_class

from exporter.cli.command import GLOBAL_OPTIONS, CommandContext
from exporter.cli.groups import Root
from exporter.cli.output.output import Output
from exporter.cli.registry import COMMANDS, COMPLETE_VARIABLE, CommandRow
from exporter.errors import Exit
from exporter.version import VERSION

SHARE: Final = Path(__file__).parent / "share"
COMPLETIONS: Final = {
    "bash": "bash-completion/completions/exporter",
    "zsh": "zsh/site-functions/_exporter",
    "fish": "fish/vendor_completions.d/exporter.fish",
}
_ESCAPES: Final = str.maketrans(
    {"\\": r"\e", "-": r"\-", "'": r"\(aq", "`": r"\(ga", "^": r"\(ha", "~": r"\(ti", "…": "...", "→": r"\(->"}
)
_FILES: Final = (
    ("~/.config/exporter/exporter.toml", "the settings; exporter config example prints one with all of them explained"),
    ("~/.local/state/exporter", "marks, quarantine, and what the embedded Mission Control stores"),
    ("~/.cache/exporter", "the compiled rules of redaction; may be deleted"),
)


def files() -> dict[str, str]:
    """Return every file, by its path below `share`."""
    made = {"man/man1/exporter.1": manual()}
    for shell, path in COMPLETIONS.items():
        script = get_completion_class(shell)
        assert script is not None
        made[path] = script(Root(), {}, "exporter", COMPLETE_VARIABLE).source().strip() + "\n"
    return made


def manual() -> str:
    """Return the manual page, as roff."""
    root = Root()
    summary = "follow Copilot CLI sessions, redact secrets, and deliver every event"
    lines = [
        f'.TH EXPORTER 1 "" "session\\-exporter {VERSION}" "User Commands"',
        ".SH NAME",
        f"exporter \\- {_text(summary)}",
        ".SH SYNOPSIS",
        ".B exporter",
        ".I COMMAND",
        "[OPTIONS]",
        ".SH DESCRIPTION",
        *_paragraphs((root.help or "").partition("\b")[0]),
        ".SH COMMANDS",
        *(line for row in COMMANDS for line in _command(row, root)),
        ".SH OPTIONS OF EVERY COMMAND",
        *_options(GLOBAL_OPTIONS, click.Context(root)),
        ".SH EXIT STATUS",
        *(line for code in Exit for line in _item(str(int(code)), code.meaning)),
        ".SH FILES",
        *(line for name, meaning in _FILES for line in _item(name, meaning)),
        ".SH ENVIRONMENT",
        *_item("EXPORTER_NAME, EXPORTER_TABLE__NAME", "a setting; overrides the file, and an option overrides it"),
        *_item("XDG_CONFIG_HOME, XDG_STATE_HOME, XDG_CACHE_HOME", "directories of the files above"),
    ]
    return "\n".join(lines) + "\n"


def _command(row: CommandRow, root: Root) -> Iterator[str]:
    command = row.load()
    context = click.Context(
        command, info_name=f"exporter {row.words}", obj=CommandContext(Output(as_json=False, quiet=False, color=False))
    )
    usage = " ".join([f"exporter {row.words}", *command.collect_usage_pieces(context)])
    yield f".SS {_text(usage)}"
    yield from _paragraphs(command.help or "")
    yield from _options(command.params, context)
    for example, does in command.examples.items():
        yield from (".PP", f"{_text(does[:1].upper() + does[1:])}:", ".RS", ".nf", _text(example), ".fi", ".RE")


def _options(params: "tuple[click.Parameter, ...] | list[click.Parameter]", context: click.Context) -> Iterator[str]:
    for one in params:
        record = one.get_help_record(context)
        if record is None and isinstance(one, click.Argument):
            record = (one.make_metavar(context), getattr(one, "help", None) or "")
        if record is not None:
            yield from _item(*record)


def _item(name: str, meaning: str) -> Iterator[str]:
    yield from (".TP", rf"\fB{_text(name)}\fR", _text(meaning))


def _paragraphs(text: str) -> Iterator[str]:
    for paragraph in re.split(r"\n\s*\n", text.strip()):
        if paragraph:
            yield from (".PP", _text(" ".join(paragraph.split())))


def _text(text: str) -> str:
    escaped = text.translate(_ESCAPES)
    return rf"\&{escaped}" if escaped.startswith(".") else escaped


def write() -> None:
    """Write them where they stand in the repository."""
    for name, content in files().items():
        path = SHARE / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")


if __name__ == "__main__":
    write()
