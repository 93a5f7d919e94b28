"""A shell's command line taken apart: its simple commands, and through which others their output reaches the tool.

Not a shell: nothing is expanded, and what a shell would refuse is read as well as it can be. Every reading takes time
in proportion to the text, whatever it holds.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

Words: TypeAlias = tuple[str, ...]

_DEPTH_MAX: Final = 16
_INTO_MAX: Final = 8
_SUBSTITUTED: Final = "$()"
"""What stands for text that is known only when the command runs."""
_BLANK: Final = re.compile(r"(?:[ \t\r]|\\\r?\n)++")
_COMMENT: Final = re.compile(r"#[^\n]*+")
_REDIRECTION: Final = re.compile(r"(\d*+|&)(<<<|<<-?|<>|<&|<(?!\()|>>|>&|>\||>(?!\())")
_OPERATOR: Final = re.compile(r"&&|\|\||\|&|;;&|;;|;&|[|&;()\n]")
_PLAIN: Final = re.compile(r"[^\s'\"`$\\|&;()<>]++")
_ANSI: Final = re.compile(r"\$'((?:[^'\\]|\\.)*+)(?:'|\Z)", re.DOTALL)
_SINGLE: Final = re.compile(r"'([^']*+)(?:'|\Z)")
_SUBSTITUTION: Final = re.compile(r"[$<>]\(|`|\$\{")
_QUOTED: Final = re.compile(r'[^"\\$`]++|\\.|\$(?![({])', re.DOTALL)
# What counts up to the end of a quotation or a substitution, by what closes it.
_IN_QUOTES: Final = re.compile(r'\\.|"|`|\$[({]', re.DOTALL)
_IN_CODE: Final = re.compile(r"\\.|'[^']*+(?:'|\Z)|\$?[({]|[)}\"`]", re.DOTALL)
_CLOSED_BY: Final = {"(": ")", "{": "}", "`": "`", '"': '"'}
_OPENS: Final = {
    "{": "}",
    "if": "fi",
    "while": "done",
    "until": "done",
    "for": "done",
    "select": "done",
    "case": "esac",
}
_CLOSES: Final = frozenset(_OPENS.values())
_BETWEEN: Final = frozenset(("then", "do", "else", "elif", "!", "in"))
FILES_TO_THE_TOOL: Final = frozenset(("/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/fd/1", "/dev/fd/2"))
"""What is written to one of these reaches the tool."""
_TO_THE_TOOL: Final = FILES_TO_THE_TOOL | {"1", "2"}


class Run(NamedTuple):
    """A simple command whose output reaches the tool, and the first of the commands that it is piped into.

    The files that it reads as its input follow its words.
    """

    words: Words
    into: tuple[Words, ...] = ()


@dataclass(slots=True, eq=False)
class _Stage:
    """A simple command or, without words, a group, within a pipeline."""

    words: list[str] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)
    is_group: bool = False
    is_away: bool = False
    """Its output goes into a file."""
    reaches: bool = True
    into: tuple[Words, ...] = ()


@dataclass(slots=True, eq=False)
class _Group:
    """What is between brackets or words such as `if` and `fi`, as a stage of the pipeline around it."""

    closed_by: str
    pipeline: list[_Stage]
    begins: int
    """How many pipelines there are before those in it."""


class _Token(NamedTuple):
    """A word, an operator, or a redirection of input or output with its target."""

    kind: str
    text: str
    is_bare: bool = True
    """Nothing of it is quoted, so it may be a word of the grammar."""


class _Body(NamedTuple):
    """A here-document: the line that ends it, and whether tabs may be before that."""

    end: str
    may_indent: bool


def runs(command: str, passes_on: Callable[[Words], bool]) -> Iterator[Run]:
    """The simple commands whose output reaches the tool.

    It does not if it is substituted, goes to a file, or is piped into a command that does not pass it on (`passes_on`
    is asked for its words).
    """
    for pipeline, group in _Parser().read(command):
        reaches, into = (group.reaches, group.into) if group is not None else (True, ())
        for stage in reversed(pipeline):
            stage.reaches = reaches = reaches and not stage.is_away
            stage.into = into
            words = (*stage.words, *stage.inputs)
            if reaches and words and not stage.is_group:
                yield Run(words, into)
            reaches = reaches and not stage.is_group and passes_on(words)
            into = (words, *into)[:_INTO_MAX]


class _Parser:
    """Puts tokens into pipelines; one that is in a group comes after the one that the group is in."""

    def __init__(self) -> None:
        self._pipelines: list[tuple[list[_Stage], _Stage | None]] = []
        self._groups: list[_Group] = []
        self._pipeline: list[_Stage] | None = None
        self._stage: _Stage | None = None

    def read(self, command: str) -> list[tuple[list[_Stage], _Stage | None]]:
        """The pipelines of a command line, each with the group that it is in."""
        for token in _tokens(command):
            if token.kind == "word":
                self._word(token)
            elif token.kind == "operator":
                self._operator(token.text)
            elif token.kind == "input":
                self._current().inputs.append(token.text)
            elif token.text not in _TO_THE_TOOL:
                self._current().is_away = True
        return self._pipelines

    def _current(self) -> _Stage:
        if self._pipeline is None:
            self._pipeline = []
            around = self._groups[-1].pipeline[-1] if self._groups else None
            self._pipelines.append((self._pipeline, around))
        if self._stage is None:
            self._stage = _Stage()
            self._pipeline.append(self._stage)
        return self._stage

    def _word(self, token: _Token) -> None:
        stage, word = self._stage, token.text
        if stage is not None and (stage.words or stage.is_group):
            if not stage.is_group:
                stage.words.append(word)
        elif token.is_bare and word in _OPENS:
            self._open(_OPENS[word])
            if word == "for":  # up to its words is no command
                self._current().words.append(word)
        elif token.is_bare and word in _CLOSES:
            self._close(word)
        elif not (token.is_bare and word in _BETWEEN):
            self._current().words.append(word)

    def _operator(self, text: str) -> None:
        if text == "(":
            self._open(")")
        elif text == ")":
            self._close(text)
        elif text in ("|", "|&"):
            self._current()
            self._stage = None
        else:
            self._pipeline = self._stage = None

    def _open(self, closed_by: str) -> None:
        if len(self._groups) >= _DEPTH_MAX and self._pipeline is None:
            return  # nothing that a pipeline would tell
        stage = self._current()
        if stage.words:  # a function's name
            self._pipeline = self._stage = None
            stage = self._current()
        if len(self._groups) < _DEPTH_MAX:
            stage.is_group = True
            assert self._pipeline is not None
            self._groups.append(_Group(closed_by, self._pipeline, len(self._pipelines)))
        self._pipeline = self._stage = None

    def _close(self, closed_by: str) -> None:
        self._pipeline = self._stage = None
        if self._groups and self._groups[-1].closed_by == closed_by:
            group = self._groups.pop()
            if len(self._pipelines) > group.begins:  # else a function's body follows
                self._pipeline, self._stage = group.pipeline, group.pipeline[-1]


def _tokens(text: str) -> Iterator[_Token]:
    at, bodies, ends = 0, list[_Body](), dict[_Body, int]()
    while at < len(text):
        if (found := _BLANK.match(text, at) or _COMMENT.match(text, at)) is not None:
            at = found.end()
        elif (found := _REDIRECTION.match(text, at)) is not None:
            at, target = _target(text, found.end())
            if found[2].startswith("<<") and found[2] != "<<<":
                bodies.append(_Body(target, found[2] == "<<-"))
            elif found[2].startswith(">") and found[1] in ("", "1", "&"):
                yield _Token("output", target)
            elif found[2] == "<":
                yield _Token("input", target)
        elif (found := _OPERATOR.match(text, at)) is not None:
            at = found.end()
            yield _Token("operator", found[0])
            if found[0] == "\n" and bodies:
                ends = ends or _last_ends(text)
                for body in bodies:
                    if ends.get(body, -1) >= at:  # else it is no here-document but, say, a shift of bits
                        at = _after_body(text, at, body)
                bodies.clear()
        else:
            after, word, is_bare = _word(text, at)
            if after == at:  # blanks that separate nothing, or an end of one that was not begun
                after, word = at + 1, text[at]
            at = after
            yield _Token("word", word, is_bare)


def _target(text: str, at: int) -> tuple[int, str]:
    found = _BLANK.match(text, at)
    at, target, _ = _word(text, found.end() if found is not None else at)
    return at, target


def _last_ends(text: str) -> dict[_Body, int]:
    """Where the last line is that would end a here-document, by the document."""
    found, at = dict[_Body, int](), 0
    for line in text.split("\n"):
        found[_Body(line, False)] = found[_Body(line.lstrip("\t"), True)] = at
        at += len(line) + 1
    return found


def _after_body(text: str, at: int, body: _Body) -> int:
    """The place after a here-document, whose end is known to follow."""
    while at < len(text):
        newline = text.find("\n", at)
        stop = newline if newline >= 0 else len(text)
        line = text[at:stop]
        at = stop + 1
        if (line.lstrip("\t") if body.may_indent else line) == body.end:
            return stop
    return at


def _word(text: str, at: int) -> tuple[int, str, bool]:
    """The word at a place: where it ends, the word, and whether nothing in it is quoted or substituted."""
    pieces, is_bare = list[str](), True
    while at < len(text):
        if (found := _PLAIN.match(text, at)) is not None:
            pieces.append(found[0])
            at = found.end()
            continue
        found = _ANSI.match(text, at) or _SINGLE.match(text, at)
        if found is not None:
            pieces.append(found[1])
            at = found.end()
        elif text[at] == '"':
            at = _quotation(text, at + 1, pieces)
        elif (found := _SUBSTITUTION.match(text, at)) is not None:
            at = _substitution(text, found, pieces)
        elif text[at] == "\\":
            pieces.append(text[at + 1 : at + 2])
            at += 2
        elif text[at] == "$":
            pieces.append("$")
            at += 1
            continue
        else:
            break
        is_bare = False
    return min(at, len(text)), "".join(pieces), is_bare


def _quotation(text: str, at: int, pieces: list[str]) -> int:
    """Add what is in double quotes; returns the place after them."""
    while at < len(text) and text[at] != '"':
        if (found := _QUOTED.match(text, at)) is not None:
            piece = found[0]
            pieces.append(piece[1:] if piece[0] == "\\" and piece[1] in '"\\$`' else piece)
            at = found.end()
        elif (found := _SUBSTITUTION.match(text, at)) is not None:
            at = _substitution(text, found, pieces)
        else:  # a backslash at the end
            break
    return at + 1


def _substitution(text: str, opened: re.Match[str], pieces: list[str]) -> int:
    """Add what stands for a substitution, or a variable as it is written; returns the place after it."""
    end = _closed(text, opened.end(), opened[0][-1])
    pieces.append(text[opened.start() : end] if opened[0] == "${" else _SUBSTITUTED)
    return end


def _closed(text: str, at: int, opened: str) -> int:
    """The place after what closes a substitution, with quotations and further substitutions in it."""
    open_ones = [_CLOSED_BY[opened]]
    while open_ones:
        found = (_IN_QUOTES if open_ones[-1] == '"' else _IN_CODE).search(text, at)
        if found is None:
            return len(text)
        at, mark = found.end(), found[0]
        if mark == open_ones[-1]:
            open_ones.pop()
        elif mark[-1] in _CLOSED_BY and mark[0] not in "\\'" and (mark[-1] != "{" or mark[0] == "$"):
            open_ones.append(_CLOSED_BY[mark[-1]])
    return at
