"""Formats whose shape says little: a value belongs to one only if it is assigned to one of the names of the format.

There are hundreds of such formats, with several names each. A gate finds one telling word of a name; whether that word
is part of a name that is assigned a value is checked once for all formats together.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import lru_cache
from typing import Final

from redaction.heuristics.placeholders import only_dummies
from redaction.heuristics.values import cut_end, looks_random
from redaction.heuristics.words import share_of_words, word_list
from redaction.rules.context.assignments import ASSIGNMENT_GATES
from redaction.rules.rule import Family, Rule, RuleSpan, with_open_counts
from redaction.rules.shape import CUT_RANDOM, RUN_MIN, Shape
from redaction.rules.token_reader import TokenReader

_NAMES_CACHED: Final = 2048
_FIRST: Final = 3
_COMMON: Final = word_list("common")
_TELLING_MIN: Final = 6
_ALONE_MIN: Final = 4
# Names with such an end are found by the gates of assignments.
_FOUND_BY_ASSIGNMENT: Final = re.compile(
    r"(?:password|passwd|passphrase|pwd|secret|token|(?:^| )(?:api|access|account|auth|private|client|service|storage|"
    r"encryption|signing|master|admin|shared|license|application|consumer|deploy|webhook) ?key|apikey)s?$"
)
_KEY_NAME_END: Final = re.compile(r"(?:^| )(?:key|api|access|auth|pat|app|master|read|write|pass)$")
_HEAD: Final = 120
_NAME_MAX: Final = 48
# What a value has, and words and names in code seldom: a run with a digit, or letters of changing case.
_IN_RUN: Final = r"[\w+/.%~!@#$^&*\-]"
_IN_RUN_NO_DIGIT: Final = r"[A-Za-z_+/.%~!@#$^&*\-]"
_VALUES: Final = (
    # Each matches once in a run. What is counted is written out, which Hyperscan reads three times as fast.
    f"[^{_IN_RUN[1:]}(?:"
    + "|".join(_IN_RUN_NO_DIGIT * at + "[0-9]" + _IN_RUN * (RUN_MIN - 1 - at) for at in range(RUN_MIN))
    + ")",
    f"[^{_IN_RUN[1:]}{_IN_RUN_NO_DIGIT * RUN_MIN}{_IN_RUN_NO_DIGIT}*[0-9]",
    "[a-z][A-Z](?:[a-z]{1,2}|[a-z][A-Z][a-z]|[A-Z]{1,6}[a-z]{1,3})[A-Z]",
)
_MORE_MAX: Final = 20
# Backwards from a value: its quote, the operator, the quote of the name, the name.
_ASSIGNED_NAME: Final = re.compile(
    rb"[\"'`\\([ \t]{0,32}(?:>=|=:{1,3}|==|=\?|=|:|,|>|\|)[ \t]{0,12}[\"'`\\\])}* ]{0,17}([\w.\-][\w. \-]{1,60})"
)
_BEGIN: Final = re.compile(
    rb"(?<![0-9A-Za-z])|(?<![A-Za-z])(?<=[0-9])|(?<=[a-z])(?=[A-Z])|(?<=\\[nrt])|(?<=%[0-9A-F]{2})"
)
_REST: Final = re.compile(rb"[0-9A-Za-z_. -]{0,20}\Z")
_SEPARATORS: Final = (b"_", b".", b" ", b"-")
_WORD_START: Final = re.compile(rb"(?<![0-9A-Za-z])[0-9A-Za-z]|(?<=[a-z0-9])[A-Z]|(?<=[0-9])[a-z]")
# An identifier of a program, perhaps with a few digits.
_IDENTIFIER: Final = re.compile(
    rb"_{0,2}(?:[a-z]{1,20}\d{0,2}(?:[_-][a-z]{1,20}\d{0,2}|[_-]\d{1,2}){1,12}"
    rb"|[A-Z]{1,20}\d{0,2}(?:_[A-Z]{1,20}\d{0,2}|_\d{1,2}){1,12})_{0,2}"
)
# The same in camel case, with one digit and long words.
_MEMBER: Final = re.compile(rb"[a-z]{4,20}(?:[A-Z]+[a-z]{0,20}){1,6}\d(?:[A-Z][a-z]{2,20}){1,6}")
_WORDS_SHARE_MAX: Final = 0.66
_DIGIT: Final = re.compile(rb"[0-9]")
# How many bytes after such a byte are part of an escape and not of the name.
_ESCAPES: Final = {b"\\": 1, b"%": 2}

_OPENING: Final = rb"(?:[A-Za-z_][\w.:!&]{0,30}\([ ]?)?[\"'`\\[(<]{0,17}+ ?(?:(?i:bearer|token|basic) )?"
_CLOSING: Final = rb"[\"'`\\\])}*]{0,17}+"
_LINES: Final = rb"(?:\s|\\{1,15}[nrt]){0,32}+"
_OPERATOR: Final = rb"(?:=>|:{1,3}=|:-|[=!]==?|[?|+]?=|:|,|\|\|?|\?\?|->|<-|\(|\xe2\x94\x82)"
_NOUNS: Final = (
    b"key",
    b"token",
    b"secret",
    b"password",
    b"passwd",
    b"pwd",
    b"auth",
    b"pat",
    b"id",
    b"com",
    b"access",
    b"private",
)
# How a value may follow its name.
_JOINS: Final = (
    _CLOSING + rb"[ \t]{0,16}" + _OPERATOR + rb"(?:\*\*)?[ \t]{0,16}" + _OPENING,
    rb"(?:\[\d{0,4}\])?(?::? ?[\w<>\[\]&'|?*]{1,24}(?: \w{1,12})?) ?:?=[ \t]{0,8}" + _OPENING,
    rb": \(string\) (?:\(len=\d{1,5}\) )?\\{0,15}[\"']",
    rb"(?:"
    + b"|".join(b"(?<=(?i:%b))" % noun for noun in _NOUNS)
    + rb")(?:(?:[ \t]|\\{1,15}t){1,24}(?:- )?[\"'`\\]{0,17}|-)",
    rb"[\"'`\\]{0,17}[\s\"'`\\,;nrt}{-]{1,64}(?i:value|val|default|content|secretstring|string)[\"'`\\]{0,17}"
    rb"[ \t]{0,8}[:=][ \t]{0,8}[\"'`\\]{0,17}",
    rb"(?:[\"'\\]{1,17}[^<>\n]{0,60})?(?:</[\w:.-]{1,30})?>" + _LINES + rb"(?:<[\w:.-]{1,30}(?: [^<>\n]{0,40})?>)?",
    rb"[\"'`*]{0,4} (?:is|was|equals|to|as)[: ]{1,3}" + _OPENING,
    rb"[\"'\\]{0,9}:[ ]{0,4}(?:[|>][-+]?)?(?:\s|\\{1,15}[nr]){1,3}[ ]{1,24}",
)
_FOLLOWS: Final = re.compile(
    rb"[\w.-]{0,40}+(?: [A-Za-z]{1,12}){0,2}?(?P<join>(?:" + b"|".join(_JOINS) + rb"))(?<!\\)(?=[\w+/=.~:!@#$%^&*-]{6})"
)


class Member:
    """One format of a family: its rule, its names, and the shape of its values."""

    __slots__ = ("_names", "_split_names", "reader", "rule", "shape")

    def __init__(self, rule: Rule, names: Sequence[str], reader: TokenReader, shape: Shape) -> None:
        self.rule = rule
        self.reader = reader
        self.shape = shape
        self._names = names
        self._split_names: tuple[tuple[bytes, ...], ...] = ()

    def is_named(self, name: bytes) -> bool:
        """Whether this text ends with one of the names as separate words."""
        if not self._split_names:
            self._split_names = tuple(tuple(one.lower().encode().split()) for one in self._names)
        lowered = name.lower()
        return any(_ends_with(name, lowered, words) for words in self._split_names)

    def of(self, line: bytes, start: int) -> Sequence[RuleSpan]:
        """The secret of this format that begins at `start`, if there is one."""
        found = self.reader.match(line, start)
        spans, _ = self.reader.of(line, found) if found is not None else ((), 0)
        return tuple((*span, self.rule) for span in spans if self._is_random(line[slice(*span)]))

    def _is_random(self, value: bytes) -> bool:
        """Whether the value is not a name itself, such as of the variable that holds the secret."""
        if len(value) > _NAME_MAX or not self.reader.may_hold_digits:
            return True
        if _DIGIT.search(value) and not _IDENTIFIER.fullmatch(value) and not _MEMBER.fullmatch(value):
            return True
        if b":" in value:  # no identifier: a user and a password, unless those are dummies
            return not only_dummies(value.decode("latin-1"))
        return share_of_words(value.decode("latin-1")) < _WORDS_SHARE_MAX

    def of_cut(self, start: int, end: int) -> Sequence[RuleSpan]:
        """The beginning of a secret whose rest was cut off."""
        return ((start, end, self.rule),) if end - start < self.shape.shortest else ()


def _ends_with(name: bytes, lowered: bytes, words: Sequence[bytes]) -> bool:
    """Whether the name ends with these words, with at most one separator between two, and the rest of a word."""
    at = lowered.find(words[0])
    while at >= 0:
        end = at + len(words[0])
        for word in words[1:]:
            if not lowered.startswith(word, end):
                end += lowered.startswith(_SEPARATORS, end)
                if not lowered.startswith(word, end):
                    break
            end += len(word)
        else:
            if _REST.match(name, end) and _BEGIN.match(name, at):
                return True
        at = lowered.find(words[0], at + 1)
    return False


def _separated(name: str) -> str:
    return "[_. -]?".join(map(re.escape, name.split()))


def gate_of(name: str) -> str | None:
    """The expression that finds a name by one telling word, if the name has one."""
    words = name.split()
    word = max((word for word in words if word not in _COMMON), key=len, default="")
    return f"(?i:{re.escape(word)})" if len(word) >= (_TELLING_MIN if len(words) > 1 else _ALONE_MIN) else None


def families(members: Iterable[tuple[Member, Sequence[str]]]) -> Iterator[Family]:
    """One family for each telling word, and one for each kind of assignment."""
    by_gate: dict[str, dict[Member, None]] = {}
    by_name: dict[bytes, list[Member]] = {}
    for member, names in members:
        found_by_assignment = [name for name in names if _FOUND_BY_ASSIGNMENT.search(name)]
        gates = {name: gate_of(name) for name in names if name not in found_by_assignment}
        for name in names:
            if gates.get(name) is None:
                by_name.setdefault(name.replace(" ", "").lower().encode(), []).append(member)
        for gate in filter(None, gates.values()):
            by_gate.setdefault(gate, {})[member] = None
        for name in _unseen(member, [name for name in names if gates.get(name, "") is None], gates.values()):
            by_gate.setdefault(f"(?i:{_separated(name)})", {})[member] = None
    for gate, found in by_gate.items():
        yield _family(gate, tuple(found))
    name_starts = frozenset(name[:_FIRST] for name in by_name)
    owners = lru_cache(_NAMES_CACHED)(lambda name: tuple(_owners(name, by_name, name_starts)))
    rules = tuple(dict.fromkeys(member.rule for found in by_name.values() for member in found))
    for gate, length in ASSIGNMENT_GATES:
        yield _assigned(gate, length, rules, owners)


def _unseen(member: Member, names: Iterable[str], gates: Iterable[str | None]) -> Iterator[str]:
    """Names of common words in an example that neither the gates of assignments nor those of telling words find."""
    shown = member.rule.example.partition("=")[0].replace("_", " ").lower()
    if not (
        _FOUND_BY_ASSIGNMENT.search(shown)
        or _KEY_NAME_END.search(shown)
        or any(re.search(gate, shown) for gate in gates if gate)
    ):
        yield from (name for name in names if name in shown and not _KEY_NAME_END.search(name))


def _owners(name: bytes, by_name: Mapping[bytes, Sequence[Member]], name_starts: Set[bytes]) -> Iterator[Member]:
    """The members with a name that begins at a word of this name and reaches nearly to its end."""
    for begin in _WORD_START.finditer(name, max(0, len(name) - _NAME_MAX)):
        rest = name[begin.start() :].translate(None, b"_. -").lower()
        if rest[:_FIRST] not in name_starts:
            continue
        for end in range(max(2, len(rest) - _MORE_MAX), len(rest) + 1):
            yield from by_name.get(rest[:end], ())


def _longest(found: Iterable[Sequence[RuleSpan]]) -> Sequence[RuleSpan]:
    """What reaches farthest: a format of letters and digits may fit the beginning of one with other characters."""
    return max((spans for spans in found if spans), key=lambda spans: spans[-1][1], default=())


def _assigned(gate: str, length: int, rules: tuple[Rule, ...], owners: Callable[[bytes], Sequence[Member]]) -> Family:
    """A family whose gate ends `length` bytes into a value that is assigned to the name of a secret."""

    def extract(line: bytes, to: int) -> tuple[Sequence[RuleSpan], int]:
        start = to - length
        assigned = _ASSIGNED_NAME.match(line[max(0, start - _HEAD) : start][::-1])
        if assigned is None or line[start - 1 : start] == b"\\":
            return (), to
        name = assigned[1][::-1]
        before = start - assigned.end(1) - 1
        escape = _ESCAPES.get(line[before : before + 1], 0)
        spans = _longest(member.of(line, start) for member in owners(name[escape:]))
        return (spans, spans[-1][1]) if spans else ((), to)

    return with_open_counts(Family(rules, (gate,), extract))


def _family(gate: str, members: Sequence[Member]) -> Family:
    """A family whose gate ends with a telling part of a name."""

    def extract(line: bytes, to: int) -> tuple[Sequence[RuleSpan], int]:
        follows = _FOLLOWS.match(line, to)
        if follows is None:
            return (), to
        start = follows.end()
        name = line[max(0, to - _NAME_MAX) : follows.start("join")]
        spans = _longest(found for member in members if (found := member.of(line, start)) and member.is_named(name))
        if spans:
            return spans, spans[-1][1]
        end = cut_end(line, start)
        if end - start < CUT_RANDOM or not looks_random(line[start:end]):
            return (), to
        for member in members:
            spans = member.of_cut(start, end)
            if spans and member.is_named(name):
                return spans, end
        return (), to

    is_seen = all(member.shape.has_run for member in members)
    return Family(tuple(member.rule for member in members), (gate,), extract, values=_VALUES if is_seen else ())
