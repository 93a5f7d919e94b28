"""Runs one command: finds it, reads its arguments, and turns every ending into an exit code of the contract."""

import os
import traceback
from collections.abc import Sequence

from config.errors import ConfigError
from exporter.cli.context import CommandContext
from exporter.cli.output.output import Output, ReaderGone, let_go_of_stdout, to_json
from exporter.cli.output.text import listing
from exporter.cli.parser import Parser, add_global_flags, build, help_text, refuse_unknown_flags, split
from exporter.cli.registry import find, members
from exporter.errors import Exit, ExporterError, UsageError
from exporter.version import VERSION


def run(arguments: Sequence[str]) -> int:
    """Runs the command these arguments name and returns its exit code; Ctrl-C is left to who called."""
    flags = set(arguments[: arguments.index("--")] if "--" in arguments else arguments)
    out = Output(
        as_json="--json" in flags,
        quiet=bool(flags & {"-q", "--quiet"}),
        color="--no-color" not in flags and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb",
    )
    try:
        return _ending(arguments, out, verbose=bool(flags & {"-v", "-vv", "--verbose"}))
    except ReaderGone:
        let_go_of_stdout()
        return Exit.DONE


def _ending(arguments: Sequence[str], out: Output, *, verbose: bool) -> int:
    try:
        return _dispatch(arguments, out)
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
        out.failure(
            "unexpected",
            f"{error.strerror or type(error).__name__}{where}",
            "exporter doctor checks paths and permissions",
        )
        return Exit.UNEXPECTED
    except Exception as error:  # The edge of the program: whatever is left is a defect of ours, and is named as one.
        if verbose:
            traceback.print_exc()
        # The text of an unforeseen exception may quote what was being worked on; its kind and place cannot.
        last = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{os.path.basename(last.filename)}:{last.lineno}"  # noqa: PTH119 - only its last part
        out.failure(
            "unexpected",
            f"{type(error).__name__} in {place}",
            "this is a defect of ours; -v shows the details to report",
        )
        return Exit.UNEXPECTED


def _dispatch(arguments: Sequence[str], out: Output) -> int:
    words, rest = split(arguments)
    wants_help = bool({"-h", "--help"} & set(rest))
    if not words:
        return _without_command(rest, out)
    command = find(words)
    if command is None:
        from exporter.cli.help import group_help

        if wants_help:
            out.write(group_help(words, out.palette))
            return Exit.DONE
        choices = listing((member.words.split()[1] for member in members(words)), last="or")
        raise UsageError(
            f"'exporter {words}' does nothing by itself", hint=f"choose {choices}; see: exporter {words} --help"
        )
    leaf = command.leaf()
    parser = build(words, leaf)
    if wants_help:
        out.write(help_text(parser, leaf))
        return Exit.DONE
    refuse_unknown_flags(parser, rest)
    code = leaf.run(CommandContext(parser.parse_args(rest), out))
    if code != Exit.DONE:
        from exporter.cli.help import EXIT_MEANINGS

        out.notice(f"exit {code:d}: {EXIT_MEANINGS[Exit(code)]}")
    return code


def _without_command(rest: Sequence[str], out: Output) -> int:
    if {"--version", "-V"} & set(rest):
        out.write(to_json({"version": VERSION}) if out.as_json else f"exporter {VERSION}")
        return Exit.DONE
    parser = Parser(prog="exporter", add_help=False, allow_abbrev=False)
    add_global_flags(parser)
    refuse_unknown_flags(parser, rest)
    from exporter.cli.help import overview

    out.write(overview(out.palette, out.width))
    return Exit.DONE
