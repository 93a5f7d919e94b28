"""Reading the command line: global flags anywhere, and an answer that helps when a word is unknown."""

from argparse import SUPPRESS, ArgumentParser, ArgumentTypeError, HelpFormatter
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Final, NamedTuple, NoReturn

from exporter.cli.output.text import listing
from exporter.cli.registry import Leaf, find, first_words, members
from exporter.cli.since import parse_since
from exporter.errors import UsageError

GLOBAL_WITH_VALUE: Final = ("--config", "--state-dir", "--copilot-home")


class Parser(ArgumentParser):
    """An argparse parser that raises UsageError where the original writes to stderr and exits."""

    def error(self, message: str) -> NoReturn:
        said = message.removeprefix("argument ").replace("one of the arguments", "one of")
        raise UsageError(said, hint=f"see: {self.prog} --help")


class Split(NamedTuple):
    """The command line taken apart: the words of the command, and all that is left for its parser."""

    words: str
    rest: list[str]


def split(arguments: Sequence[str]) -> Split:
    """Finds the command among the flags; raises UsageError with the nearest command when there is no such one."""
    rest: list[str] = []
    words: list[str] = []
    pending = iter(arguments)
    for token in pending:
        if token == "--" or (words and not _wants_more(words)):
            rest += [token, *pending]
        elif token in GLOBAL_WITH_VALUE:
            rest += [token, *([value] if (value := next(pending, None)) is not None else [])]
        elif token.startswith("-"):
            rest.append(token)
        else:
            words.append(_known(token, words))
    return Split(" ".join(words), rest)


def _wants_more(words: list[str]) -> bool:
    return find(" ".join(words)) is None


def _known(word: str, before: list[str]) -> str:
    choices = [command.words.split()[1] for command in members(before[0])] if before else first_words()
    if word in choices:
        return word
    group = f" of {before[0]!r}" if before else ""
    raise UsageError(
        f"no command {word!r}{group}", hint=_nearest(word, choices) or f"choose {listing(choices, last='or')}"
    )


def _nearest(word: str, choices: Iterable[str]) -> str:
    from difflib import get_close_matches

    matches = get_close_matches(word, list(choices), n=1, cutoff=0.5)
    return f"did you mean {matches[0]}?" if matches else ""


def build(words: str, leaf: Leaf) -> Parser:
    """The parser of one command, global flags included."""
    parser = Parser(
        prog=f"exporter {words}",
        description=leaf.description,
        formatter_class=_formatter,
        allow_abbrev=False,
        add_help=False,
    )
    leaf.build(parser)
    # Written down before the global flags come in: they would bury what is particular to the command.
    parser.usage = parser.format_usage().removeprefix("usage: ").rstrip().replace("%", "%%") + " [options]"
    add_global_flags(parser)
    return parser


def _formatter(prog: str) -> HelpFormatter:
    return HelpFormatter(prog, max_help_position=28)


def help_text(parser: Parser, leaf: Leaf) -> str:
    """What `--help` of a command prints: arguments first, then examples a person can copy."""
    wide = max(len(example.line) for example in leaf.examples)
    examples = "\n".join(f"  {line:<{wide}}  {does}" for line, does in leaf.examples)
    return f"{parser.format_help()}\nexamples:\n{examples}\n"


def add_global_flags(parser: ArgumentParser) -> None:
    """The flags every command takes, before or after its name."""
    group = parser.add_argument_group("options of every command")
    group.add_argument(
        "--config", metavar="FILE", help="configuration file (default: exporter.toml in the user's config directory)"
    )
    group.add_argument("--json", action="store_true", help="results and errors as JSON on stdout")
    group.add_argument("--state-dir", metavar="DIR", help="where marks, quarantine and the embedded store live")
    group.add_argument(
        "--copilot-home", metavar="DIR", help="where Copilot CLI keeps its sessions (default: ~/.copilot)"
    )
    group.add_argument(
        "--no-color", action="store_true", help="no colour (also: NO_COLOR, or output that is not a terminal)"
    )
    group.add_argument(
        "-v",
        "--verbose",
        action="count",
        default=0,
        help="show all of what is long, and the details of an unexpected error",
    )
    group.add_argument("-q", "--quiet", action="store_true", help="no progress and no notices, only results and errors")
    group.add_argument("-h", "--help", action="help", default=SUPPRESS, help="show this and exit")


def refuse_unknown_flags(parser: Parser, arguments: Sequence[str]) -> None:
    """Raises UsageError for the first flag the command does not have, naming the nearest one it has."""
    known = option_strings(parser)
    for token in arguments:
        if token == "--":
            return
        name = token.partition("=")[0]
        is_flag = token.startswith("-") and token != "-" and not token[1:2].isdigit()
        if is_flag and name not in known and (token.startswith("--") or token[:2] not in known):
            hint = _nearest(name, known) or f"see: {parser.prog} --help"
            raise UsageError(f"{parser.prog!r} has no option {name}", hint=hint)


def option_strings(parser: ArgumentParser) -> list[str]:
    """Every flag of a parser, in the order of its help."""
    # argparse has no public way to list what was added; `_actions` has been stable since Python 2.7.
    return [option for action in parser._actions if action.help != SUPPRESS for option in action.option_strings]


def whole_number(low: int, high: int) -> Callable[[str], int]:
    """An argument type: a whole number within these bounds."""

    def read(text: str) -> int:
        if not text.isascii() or not text.isdigit() or not low <= int(text) <= high:
            raise ArgumentTypeError(f"expected a whole number from {low} to {high}, got {text!r}")
        return int(text)

    return read


def since(text: str) -> datetime:
    """An argument type: a moment in the past, as `--since` takes it."""
    try:
        return parse_since(text, datetime.now().astimezone())
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from None
