"""The commands that print secrets, as rows of `commands.toml` and of users' rule files: which of them a call runs."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final

import msgspec

from redaction.commands.powershell import as_shell
from redaction.commands.shell import FILES_TO_THE_TOOL, Run, Words, runs
from redaction.errors import RuleError
from redaction.rules.rule import Extraction, Rule, RuleRow

_COMMAND_LENGTH_MAX: Final = 1 << 17
_WORD_LENGTH_MAX: Final = 1 << 12
_DEPTH_MAX: Final = 3
_CARRIED_MAX: Final = 64
"""How many words of a program that runs another one are looked at."""
_GIVEN_MAX: Final = 256
_FRAGMENT: Final = re.compile(r"\{\{(\w+)\}\}")
_JOINED: Final = re.compile(r"\|\s+")
_SHORT: Final = re.compile("-[A-Za-z0-9]")
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*\+?=")
_PROGRAM: Final = re.compile(r"[^/\\]*\Z")
_CLUSTER_LENGTH_MAX: Final = 3
"""A longer word behind one dash is one long option, as programs of Go have them."""
_NAMES: Final = re.compile(r"[\w-]+")
_TO_THE_TOOL: Final = FILES_TO_THE_TOOL | {"-"}
_POWERSHELLS: Final = ("powershell", "pwsh")
_HELP: Final = frozenset(("--help", "-help"))


class PrintingRow(RuleRow, frozen=True, kw_only=True):
    """One row of a table; `docs/redaction-rules.md` explains the fields."""

    run: tuple[str, ...]
    unless: str = ""
    into: str = ""


class _CommandTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The table of this package. `arguments` are the names of a tool's arguments that hold a command; `carriers` run
    what their arguments say; `filters` print what they read, perhaps decoded or in part, but for those that match one
    of `silent`."""

    arguments: tuple[str, ...]
    carriers: tuple[str, ...]
    filters: tuple[str, ...]
    silent: tuple[str, ...]
    fragments: Mapping[str, str]
    command: tuple[PrintingRow, ...]


class _Call(msgspec.Struct, frozen=True, rename="camel"):
    """What starts a tool call, of the data of its event."""

    arguments: Any = None
    tool_name: Any = ""


_read_call: Final = msgspec.json.Decoder(_Call).decode
_read_any: Final = msgspec.json.Decoder().decode


@dataclass(frozen=True, slots=True)
class _Pattern:
    """One word of a row: alternatives in which `*` stands for any characters."""

    options: tuple[str, ...]
    words: tuple[tuple[str, ...], ...]
    literals: tuple[str, ...]
    """One of these is in a text that has a word for this pattern."""

    @classmethod
    def of(cls, text: str) -> "_Pattern":
        """Read a pattern of a row."""
        ones = text.split("|")
        options = tuple(one for one in ones if one.startswith("-"))
        words = tuple(tuple(one.lower().split("*")) for one in ones if not one.startswith("-"))
        return cls(options, words, ("",) if options else tuple(max(parts, key=len) for parts in words))

    def matches(self, word: str) -> bool:
        """Whether a word is one of the alternatives; options are told from each other by case."""
        if word.startswith("-"):
            return any(_is_option(word, one) for one in self.options)
        lowered = word[:_WORD_LENGTH_MAX].lower()
        return any(_is_like(lowered, parts) for parts in self.words)


def _is_option(word: str, option: str) -> bool:
    """Whether a word gives this option: with a value behind `=`, or among other options of one letter."""
    name, wanted = word.lstrip("-").partition("=")[0], option.lstrip("-")
    if _SHORT.fullmatch(option):
        return word.startswith(option) or (len(word) <= _CLUSTER_LENGTH_MAX and wanted in name and word[1] != "-")
    return name == wanted


def _is_like(word: str, parts: Sequence[str]) -> bool:
    first, *middle = parts
    if not middle:
        return word == first
    if not word.startswith(first):
        return False
    at, last = len(first), middle.pop()
    for part in middle:
        at = word.find(part, at)
        if at < 0:
            return False
        at += len(part)
    return len(word) - len(last) >= at and word.endswith(last)


@dataclass(frozen=True, slots=True)
class _Line:
    """One way to run what a row tells: words that follow the program in this order, and options anywhere."""

    rule: Rule
    words: tuple[_Pattern, ...]
    options: tuple[_Pattern, ...]
    unless: tuple[_Pattern, ...]
    into: tuple[_Pattern, ...]

    def may_match(self, text: str) -> bool:
        """Whether a text in small letters has something of each word of the row."""
        return all(any(one in text for one in pattern.literals) for pattern in (*self.words, *self.into[:1]))

    def matches(self, given: Sequence[str], into: Sequence[Words]) -> bool:
        """Whether a program with these arguments prints a secret, piped into these commands."""
        rest = iter(given)
        return (
            _HELP.isdisjoint(given)
            and all(any(pattern.matches(word) for word in rest) for pattern in self.words)
            and _has_all(self.options, given)
            and not any(self._is_exempt(*pair) for pair in zip_longest(given, given[1:], fillvalue=""))
            and (not self.into or any(words and _has_all(self.into, words) for words in into))
        )

    def _is_exempt(self, word: str, following: str) -> bool:
        """Whether a word says that no secret is printed: not if it names a file that is the output of the tool."""
        if not any(pattern.matches(word) for pattern in self.unless):
            return False
        values = (word.partition("=")[2], word[2:], following if word.startswith("-") else "")
        return _TO_THE_TOOL.isdisjoint(values)


def _has_all(patterns: Iterable[_Pattern], words: Sequence[str]) -> bool:
    return all(any(pattern.matches(word) for word in words) for pattern in patterns)


class PrintingCommands:
    """The table, compiled; it never changes, and any thread may ask."""

    def __init__(self, rows: Iterable[PrintingRow]) -> None:
        table = built_in_table()
        self._rules: dict[str, Rule] = {}
        self._arguments = table.arguments
        self._carriers = frozenset(table.carriers)
        self._filters = frozenset(table.filters)
        self._silent = re.compile("|".join(f"(?:{_whole(one, table.fragments)})" for one in table.silent), re.DOTALL)
        self._lines: dict[str, list[_Line]] = {}
        for row in rows:
            rule = row.rule((), _extract_nothing)
            self._rules[rule.id] = rule
            for line in row.run:
                programs, *words = _JOINED.sub("|", line).split()
                for program in programs.lower().split("|"):
                    self._lines.setdefault(program, []).append(_line(row, rule, words))

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rule of each row."""
        return tuple(self._rules.values())

    def rule_named(self, id: str) -> Rule:
        """The rule of the row with this id."""
        return self._rules[id]

    def rule_of(self, data: bytes) -> Rule | None:
        """The rule of a tool call that prints a secret, told by the data of the event that starts it; never raises."""
        try:
            call = _read_call(data)
            shell = str(call.tool_name).lower()
            for command in self._commands(call.arguments):
                if isinstance(command, list):
                    rule = self._rule_of_words(Run(tuple(command)), 0)
                else:
                    rule = self._rule_in(command, 0, shell)
                if rule is not None:
                    return rule
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            pass
        return None

    def of(self, command: str) -> Rule | None:
        """The rule of a shell's command line that prints a secret to the tool."""
        return self._rule_in(command, 0, "")

    def _commands(self, arguments: Any) -> Iterator[str | list[str]]:
        """What the arguments of a call run: command lines, and programs with their arguments."""
        if isinstance(arguments, str):
            text = arguments
            arguments = _read_any(text) if text.lstrip().startswith("{") else None
            if not isinstance(arguments, dict):
                yield text
        if isinstance(arguments, dict):
            for name in self._arguments:
                given = arguments.get(name)
                if isinstance(given, str):
                    yield given
                elif isinstance(given, list) and (words := [word for word in given if isinstance(word, str)]):
                    yield words
                    yield from (word for word in words if " " in word)

    def _rule_in(self, command: str, depth: int, shell: str) -> Rule | None:
        """The rule of a command line for this shell, or for the tool with this name."""
        command = command[:_COMMAND_LENGTH_MAX]
        if shell.endswith(_POWERSHELLS):
            command = as_shell(command)
        lowered = command.lower()
        programs = self._lines.keys() & _NAMES.findall(lowered)
        may_match = any(line.may_match(lowered) for program in programs for line in self._lines[program])
        if not may_match and not any(program in lowered for program in _POWERSHELLS):
            return None
        found = (self._rule_of_words(run, depth) for run in runs(command, self._passes_on))
        return next((rule for rule in found if rule is not None), None)

    def _rule_of_words(self, run: Run, depth: int) -> Rule | None:
        words = _without_assignments(run.words)
        is_carried = bool(words) and _program(words[0]) in self._carriers
        for at in range(min(len(words), _CARRIED_MAX if is_carried else 1)):
            for line in self._lines.get(_program(words[at]), ()):
                if line.matches(words[at + 1 : at + 1 + _GIVEN_MAX], run.into):
                    return line.rule
            if at and depth < _DEPTH_MAX and any(sign in words[at] for sign in " \t\n$["):
                rule = self._rule_in(words[at], depth + 1, _program(words[0]))
                if rule is not None:
                    return rule
        return None

    def _passes_on(self, words: Words) -> bool:
        words = _without_assignments(words)
        words = words[1:] if words and words[0] == "sudo" else words
        if not words or (program := _program(words[0])) not in self._filters:
            return False
        return self._silent.fullmatch("\0".join((program, *words[1:]))[:_WORD_LENGTH_MAX]) is None


def _line(row: PrintingRow, rule: Rule, words: Sequence[str]) -> _Line:
    patterns = [_Pattern.of(word) for word in words]
    return _Line(
        rule,
        tuple(one for one in patterns if one.words),
        tuple(one for one in patterns if not one.words),
        tuple(map(_Pattern.of, row.unless.split())),
        tuple(map(_Pattern.of, row.into.split())),
    )


def _whole(expression: str, fragments: Mapping[str, str]) -> str:
    """An expression with the fragments that it names in double braces."""
    return _FRAGMENT.sub(lambda name: f"(?:{_whole(fragments[name[1]], fragments)})", expression)


def _extract_nothing(_line: bytes, to: int) -> Extraction:
    """The rules of commands have no gates."""
    return (), to


def _without_assignments(words: Words) -> Words:
    at = 0
    while at < len(words) and _ASSIGNMENT.match(words[at]):
        at += 1
    return words[at:]


def _program(word: str) -> str:
    """The name of a program in any directory."""
    found = _PROGRAM.search(word[-_WORD_LENGTH_MAX:])
    return (found[0] if found is not None else word).lower().removesuffix(".exe")


@cache
def built_in_table() -> _CommandTable:
    """The table of this package."""
    return msgspec.toml.decode(Path(__file__).with_name("commands.toml").read_bytes(), type=_CommandTable)


def check_row(row: PrintingRow, file: str) -> None:
    """Raise `RuleError` for a row that is not told by its example, or is by its counter example."""
    if not row.run or not all(line.split() for line in row.run):
        raise RuleError(file, row.id, "run names no program")
    commands = PrintingCommands([row])
    for text, wanted in ((row.example, True), (row.counter, False)):
        if (commands.of(text) is not None) is not wanted:
            raise RuleError(
                file, row.id, f"it {'does not find its example' if wanted else 'finds its counter example'}"
            )
