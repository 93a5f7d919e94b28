"""The texts of `exporter --help` and of a command group's `--help`."""

from typing import Final

from exporter.cli.output.table import Cell, Column, Palette, pairs, table
from exporter.cli.registry import COMMANDS, GROUPS, members
from exporter.errors import Exit

EXIT_MEANINGS: Final[dict[Exit, str]] = {
    Exit.DONE: "done",
    Exit.UNEXPECTED: "unexpected error",
    Exit.USAGE: "usage: no such command or option, or a value that does not fit",
    Exit.CONFIGURATION: "configuration: a setting that cannot be used",
    Exit.PARTIAL: "done in part: something is quarantined or missing, or a check failed",
    Exit.REFUSED: "refused by a sink (authentication, policy)",
    Exit.UNREACHABLE: "a sink cannot be reached; the data is kept",
    Exit.LOCKED: "another exporter holds the lock",
    Exit.FINDINGS: "findings: `redact test --check` found secrets, `verify` differences",
}

_INTRO = """\
Follows the sessions of GitHub Copilot CLI on this machine, takes secrets out,
and delivers every event to a Mission Control. With nothing configured nothing
leaves the machine.

usage: exporter COMMAND [options]
       exporter COMMAND --help

first steps:
  exporter up --demo     see it work with a made-up session
  exporter up            see your own sessions
"""

_GLOBAL = """\
options of every command (before or after its name):
  --config FILE  --state-dir DIR  --copilot-home DIR
  --json  --no-color  -v, --verbose  -q, --quiet  -h, --help  --version

Results go to stdout, everything else to stderr. Flags win over EXPORTER_…
variables, these over the configuration file, that over the defaults.
"""


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())


def overview(palette: Palette, width: int | None) -> str:
    """What `exporter --help` prints: every command, the global flags and every exit code."""
    rows = [(Cell(command.words, "strong"), Cell(command.summary)) for command in COMMANDS]
    listed = table((Column("commands:"), Column("", flex=True)), rows, width=width and width - 2, palette=palette)
    head, *lines = listed.splitlines()
    codes = pairs([(str(int(code)), Cell(meaning)) for code, meaning in EXIT_MEANINGS.items()], palette=Palette())
    return "\n".join([_INTRO, head, *(f"  {line}" for line in lines), "", _GLOBAL, "exit codes:", _indented(codes), ""])


def group_help(group: str, palette: Palette) -> str:
    """What `exporter GROUP --help` prints: its commands, and an example of each."""
    commands = list(members(group))
    listed = pairs([(f"exporter {command.words}", Cell(command.summary)) for command in commands], palette=palette)
    examples = pairs(
        [(example.line, Cell(example.does)) for command in commands for example in command.leaf().examples[:1]],
        palette=palette,
    )
    intro = GROUPS[group]
    return "\n".join(
        [
            f"{intro[0].upper()}{intro[1:]}.",
            "",
            "commands:",
            _indented(listed),
            "",
            "examples:",
            _indented(examples),
            "",
        ]
    )
