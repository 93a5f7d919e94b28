"""The root of the command line and its groups: commands are listed by summary and imported when they are called."""

from typing import TYPE_CHECKING, Any, Final

import click

from exporter.cli.command import Command, Option
from exporter.cli.output.output import to_json
from exporter.cli.registry import COMMANDS, GROUPS, find
from exporter.errors import Exit
from exporter.version import VERSION

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_HELP_WIDTH_MAX: Final = 100
_INTRODUCTION: Final = """\
Follows the GitHub Copilot CLI sessions on this machine, redacts secrets, and delivers every event to a Mission Control.
By default nothing leaves the machine.

\b
First steps:
  exporter up --demo     try it with made-up sessions
  exporter up            show your own sessions
"""
_CLOSING: Final = (
    "Results go to stdout, everything else to stderr. Flags override EXPORTER_… variables, "
    "variables override the configuration file, and the file overrides the defaults."
)


class Group(Command, click.Group):
    """The commands that begin with these words; none is imported for a list or a completion of them."""

    def __init__(self, words: str = "", **more: Any) -> None:
        super().__init__(
            words or "exporter", callback=self.alone, invoke_without_command=True, subcommand_metavar="COMMAND", **more
        )
        self._words = words
        self._members = [one for one in COMMANDS if not words or one.words.startswith(f"{words} ")]

    def alone(self) -> int:
        """What happens when no command follows."""
        ctx = click.get_current_context()
        if ctx.invoked_subcommand is None:
            raise click.UsageError(f"{ctx.command_path!r} needs a command")
        return Exit.DONE

    def list_commands(self, ctx: click.Context) -> list[str]:
        position = len(self._words.split())
        return list(dict.fromkeys(one.words.split()[position] for one in self._members))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        words = f"{self._words} {cmd_name}".strip()
        if summary := GROUPS.get(words):
            return Group(words, help=f"{summary[0].upper()}{summary[1:]}.")
        found = find(words)
        return found.load() if found else None

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem[str]]":
        from click.shell_completion import CompletionItem

        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        return [
            *(CompletionItem(name, help=self._summary(name)) for name in names),
            *click.Command.shell_complete(self, ctx, incomplete),
        ]

    def _summary(self, name: str) -> str:
        words = f"{self._words} {name}".strip()
        return GROUPS.get(words) or next(one.summary for one in self._members if one.words == words)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        paint = ctx.obj.out.view.palette.paint
        with formatter.section("Commands"):
            formatter.write_dl([(paint(one.words, "strong"), one.summary) for one in self._members])
        super().format_options(ctx, formatter)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.examples = dict(item for one in self._members for item in list(one.load().examples.items())[:1])
        super().format_epilog(ctx, formatter)


class Root(Group):
    """`exporter` itself: its help is the overview of everything."""

    def __init__(self) -> None:
        version = Option(
            ["-V", "--version"], is_flag=True, is_eager=True, expose_value=False, callback=_show_version,
            help="print the version and exit",
        )  # fmt: skip
        super().__init__(help=_INTRODUCTION, params=[version], context_settings={"max_content_width": _HELP_WIDTH_MAX})

    def alone(self) -> int:
        ctx = click.get_current_context()
        if ctx.invoked_subcommand is None:
            ctx.obj.out.write(ctx.get_help())
        return Exit.DONE

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write_paragraph()
        formatter.write_text(_CLOSING)
        with formatter.section("Exit codes"):
            formatter.write_dl([(str(int(code)), code.meaning) for code in Exit])


def _show_version(ctx: click.Context, _: click.Parameter, is_wanted: bool) -> None:
    if is_wanted and not ctx.resilient_parsing:
        out = ctx.obj.out
        out.write(to_json({"version": VERSION}) if out.as_json else f"exporter {VERSION}")
        ctx.exit()
