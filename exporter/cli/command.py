"""One command: what it gets, what all have (global options, examples in the help), and how a module declares one."""

import inspect
import os
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from exporter.cli.output.output import Output
from exporter.cli.output.progress import ProgressBar
from exporter.cli.output.table import TerminalView
from exporter.cli.output.text import listing, plain
from exporter.cli.values import DIRECTORY, FILE, SessionId
from exporter.core.notice import NoticeName

if TYPE_CHECKING:
    from config.load import Loaded

EXAMPLE_WIDTH_MAX: Final = 50
_SEND_NOTHING: Final = frozenset({"status", "quarantine_list", "quarantine_show", "quarantine_drop"})


@dataclass(frozen=True, slots=True)
class CommandContext:
    """One run of one command. `options` are the global ones that were given with a value, by name."""

    out: Output
    verbose: bool = False
    options: dict[str, str] = field(default_factory=dict)

    def load(
        self,
        *,
        fallbacks: bool = True,
        file: str | None = None,
        secrets: bool = True,
        sessions: bool = False,
        logs: bool = False,
        environ: Mapping[str, str] = os.environ,
    ) -> "Loaded":
        """The settings in force; raises ConfigError that names the place, the key and what was expected.

        Without `secrets`, files of tokens and headers may be empty or missing: for commands that send nothing. With
        `sessions` the directory of the CLI must be there if it was named: for commands that read sessions. With `logs`
        what goes to stderr has the form that the settings ask for: for commands that run for long.
        """
        from config.errors import ConfigError
        from config.load import load, wants_json_log

        flags: dict[str, object] = dict(self.options)
        given = flags.pop("config", None)
        chosen = file or given
        path = Path(str(chosen)) if chosen else None
        try:
            loaded = load(
                file=path, environ=environ, flags=flags, fallbacks=fallbacks, secrets=secrets, sessions=sessions
            )
        except ConfigError:
            if logs and wants_json_log(path, environ):
                self.out.log_as_json()
            raise
        if logs and loaded.settings.log_format == "json":
            self.out.log_as_json()
        return loaded

    def warn(self, loaded: "Loaded") -> None:
        """Tell what in the environment or the file has no effect: for commands that deliver, or ask who delivers."""
        for note in loaded.notes:
            if self.out.logs_json:
                self.out.log(NoticeName.SETTINGS_NOTE, "warning", note)
            else:
                self.out.notice(f"{self.out.notice_palette.paint('warning:', 'warn')} {plain(note)}")

    def ask(self, request: dict[str, object]) -> dict[str, Any]:
        """The answer of the daemon if one runs, else of this process; progress is shown meanwhile."""
        delivers = request["do"] not in _SEND_NOTHING
        loaded = self.load(secrets=delivers, sessions=delivers)
        settings = loaded.settings
        if delivers:
            self.warn(loaded)
        import asyncio

        from exporter import app

        with closing(ProgressBar(self.out)) as progress:

            def show(report: dict[str, Any]) -> None:
                for note in report.get("notes", ()):
                    self.out.notice(plain(note))
                if "notes" not in report:
                    progress.update(report)

            return asyncio.run(app.ask(settings, request, show))

    def report(self, answer: dict[str, Any], render: Callable[[TerminalView], str]) -> int:
        """Writes the answer as text or JSON and returns the exit code that it holds."""
        self.out.result(answer, render)
        return int(answer.get("exit", 0))


class Option(click.Option):
    """An option that does not take another one for its value, which would hide what was left out."""

    def type_cast_value(self, ctx: click.Context, value: Any) -> Any:
        given = value if isinstance(value, list | tuple) else [value]
        if not self.is_flag and any(one in param.opts for param in ctx.command.get_params(ctx) for one in given):
            raise click.BadOptionUsage(self.name, f"Option {self.opts[-1]!r} requires an argument.", ctx)
        return super().type_cast_value(ctx, value)


option: Final = partial(click.option, cls=Option)
argument: Final = click.argument
session_options: Final = option(
    "--session", multiple=True, type=SessionId(), help="session id or a unique prefix; can be repeated"
)
session_argument: Final = argument("session", type=SessionId(), metavar="ID", help="session id or a unique prefix")


def _remember(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    if value is not None:
        ctx.obj.options[param.name] = value


def _show_help(ctx: click.Context, _: click.Parameter, is_wanted: bool) -> None:
    if is_wanted and not ctx.resilient_parsing:
        ctx.obj.out.write(ctx.get_help())
        ctx.exit()


def _global(*names: str, **more: Any) -> Option:
    return Option(names, expose_value=False, **more)


# `main` looks for --json, --no-color, -v and -q before anything is parsed: an error of parsing obeys them too.
GLOBAL_OPTIONS: Final = (
    _global(
        "--config",
        type=FILE,
        callback=_remember,
        help="configuration file (default: exporter.toml in the user's config directory)",
    ),
    _global("--json", is_flag=True, help="write results and errors to stdout as JSON"),
    _global(
        "--state-dir", type=DIRECTORY, callback=_remember, help="directory of marks, quarantine and the embedded store"
    ),
    _global(
        "--copilot-home", type=DIRECTORY, callback=_remember, help="directory of the Copilot CLI (default: ~/.copilot)"
    ),
    _global("--no-color", is_flag=True, help="no colour (like NO_COLOR, or output to no terminal)"),
    _global("-v", "--verbose", count=True, help="show long content in full, and details of unexpected errors"),
    _global("-q", "--quiet", is_flag=True, help="show results and errors only"),
    _global("-h", "--help", is_flag=True, is_eager=True, callback=_show_help, help="show this help and exit"),
)


class Command(click.Command):
    """A command that takes the global options too, and shows examples in its help.

    `examples` are command lines that people can copy, each with what it does; they stand at the end of the help, below
    a line `Examples:`, as in `exporter up --demo  # made-up sessions, one of them live`.
    """

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **{**more, "add_help_option": False})
        self.help, _, listed = inspect.cleandoc(self.help or "").partition("\n\nExamples:\n")
        self.examples = dict(line.split("  # ") for line in listed.splitlines())

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        return [*super().get_params(ctx), *GLOBAL_OPTIONS]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            error.ctx = error.ctx or ctx  # The parser leaves it out of some; the hint names the command.
            raise

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        own = [param for param in self.params if isinstance(param, click.Option)]
        for heading, options in (("Options", own), ("Options of every command", GLOBAL_OPTIONS)):
            if records := [record for one in options if (record := one.get_help_record(ctx))]:
                with formatter.section(heading):
                    formatter.write_dl(records)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if self.examples:  # python -OO has none
            with formatter.section("Examples"):
                formatter.write_dl(self.examples.items(), col_max=EXAMPLE_WIDTH_MAX)


def command(usage: str = "[OPTIONS]") -> Callable[[Callable[..., int]], Command]:
    """Makes a command of a function: its docstring is the help and ends with examples, its result the exit code.

    The function gets the CommandContext, then its options and arguments by name.
    """

    def declare(run: Callable[..., int]) -> Command:
        return click.command(cls=Command, options_metavar=usage)(click.pass_obj(run))

    return declare


def exactly_one(**given: object) -> None:
    """Raises UsageError unless one of these options was given, and no second one."""
    chosen = [f"--{name}" for name, value in given.items() if value]
    if not chosen:
        raise click.UsageError(f"one of {listing((f'--{name}' for name in given), last='or')} is required")
    if len(chosen) > 1:
        raise click.UsageError(f"{listing(chosen)} cannot be combined")
