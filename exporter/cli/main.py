"""Runs one command line, and turns every ending into an exit code of the contract."""

import os
import traceback
from collections.abc import Sequence

import click

from config.errors import ConfigError
from exporter.cli.command import CommandContext
from exporter.cli.groups import Group, Root
from exporter.cli.output.output import Output, ReaderGone, let_go_of_stdout
from exporter.cli.output.text import listing
from exporter.cli.registry import COMPLETE_VARIABLE
from exporter.errors import Exit, ExporterError


def run(arguments: Sequence[str]) -> int:
    """Runs the command these arguments name and returns its exit code; Ctrl-C is left to who called."""
    flags = set(arguments[: arguments.index("--")] if "--" in arguments else arguments)
    out = Output(
        as_json="--json" in flags,
        quiet=bool(flags & {"-q", "--quiet"}),
        color="--no-color" not in flags and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb",
    )
    context = CommandContext(out, verbose=bool(flags & {"-v", "-vv", "--verbose"}))
    try:
        if instruction := os.environ.get(COMPLETE_VARIABLE):
            from click.shell_completion import shell_complete

            return shell_complete(Root(), {"obj": context}, "exporter", COMPLETE_VARIABLE, instruction)
        return _ending(arguments, context)
    except ReaderGone:
        let_go_of_stdout()
        return Exit.DONE


def _ending(arguments: Sequence[str], context: CommandContext) -> int:
    out = context.out
    try:
        code = _dispatch(arguments, context)
        if code != Exit.DONE:
            out.notice(f"exit {code:d}: {Exit(code).meaning}")
        return code
    except click.UsageError as error:
        out.failure("usage", *_usage(error))
        return Exit.USAGE
    except ExporterError as error:
        out.failure(error.kind, error.message, error.hint)
        return error.exit
    except ConfigError as error:
        out.failure("configuration", str(error), error.hint)
        return Exit.CONFIGURATION
    except (ReaderGone, KeyboardInterrupt):
        raise
    except OSError as error:
        where = f": {error.filename}" if error.filename else ""
        said = f"{error.strerror or type(error).__name__}{where}"
        out.failure("unexpected", said, "run `exporter doctor` to check paths and permissions")
        return Exit.UNEXPECTED
    except Exception as error:  # The edge of the program: whatever is left is a defect of ours, and is named as one.
        if context.verbose:
            traceback.print_exc()
        # The text of an unforeseen exception may quote what was being worked on; its kind and place cannot.
        last = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{os.path.basename(last.filename)}:{last.lineno}"  # noqa: PTH119 - only its last part
        said = f"{type(error).__name__} in {place}"
        out.failure("unexpected", said, "this is a bug; run with -v for the details to report")
        return Exit.UNEXPECTED


def _dispatch(arguments: Sequence[str], context: CommandContext) -> int:
    given = list(arguments)
    if given[:1] == ["help"]:
        given = [*given[1:], "--help"]
    root = Root()
    try:
        with root.make_context("exporter", given, obj=context) as ctx:
            code: int = root.invoke(ctx)
    except click.exceptions.Exit as ended:
        return ended.exit_code
    return code


def _usage(error: click.UsageError) -> tuple[str, str]:
    """What was wrong with the command line, and what helps."""
    assert error.ctx is not None, "click knows where each error of usage was made"
    said, see = error.format_message(), f"see: {error.ctx.command_path} --help"
    nearest: Sequence[str] = ()
    if isinstance(error, click.NoSuchOption):
        said, nearest = error.message, error.possibilities or ()
    elif isinstance(error.ctx.command, Group) and not isinstance(error, click.BadOptionUsage):
        from difflib import get_close_matches

        choices = error.ctx.command.list_commands(error.ctx)
        see = f"choose {listing(choices, last='or')}; {see}"
        if isinstance(error, click.NoSuchCommand):
            said, nearest = error.message, get_close_matches(error.command_name, choices, cutoff=0.5)
    hint = f"did you mean {nearest[0]}?" if nearest else see
    return f"{said[:1].lower()}{said[1:]}".rstrip("."), hint
