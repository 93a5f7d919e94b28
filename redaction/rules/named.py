"""Formats whose shape says little: a value is theirs only when it is assigned to one of their names.

There are hundreds of them, with several names each. The gate looks for one telling word per name; whether that word is
part of a name that is assigned something at all is asked once per word, for all formats together.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import lru_cache
from typing import Final

from redaction.heuristics.cut import cut_end, looks_drawn
from redaction.heuristics.placeholders import only_dummies
from redaction.heuristics.words import share_of_words
from redaction.rules.context.assignments import ASSIGNMENT_GATES
from redaction.rules.rule import Family, Rule, RuleSpan, opened
from redaction.rules.shape import CUT_RANDOM, Shape
from redaction.rules.token_reader import TokenReader

_NAMES_KEPT: Final = 2048
_FIRST: Final = 3
# Words that are in every other line of a program: a name is not known by them.
_COMMON_WORDS: Final = """
2fa aad aai abstract access account acl active addr admin ado aeg agent aio alpha amazon analysis analytics and ant
anthropic api apikey app application aps arc ark arm art auth authorization aws azure base batch bce bearer bee better
big bing bird bit bootstrap bot box boxapp browser bucket buf build call cap cat cdp central certificate cfg chan
channel chat classic cli client cloud code coder codex com company compare config connection consumer content convert
cookie corp cos credential credentials crypto ctp current dark dashboard data database deep default delivery deploy
detect dev developer device direct disk dme doc document drift drive eas easy email encrypt encryption environment eth
event exa expo ext external fab face fda fdc fec feed form full gateway gcp gem gen generic github gitlab global
google graph grid group guard hash hec hello help here hex hey honeycomb host hosted http https hub hunter iam ibm
identity image ims info insert insight insights integration iot iterable jar job join jwt kafka kagi key keys kit
knowledge language last launch layer legacy license line linear link listen lite live lob log login logs loops machine
made magic mail management map maps market master meaning medium message messaging meta meter microsoft monitor
monitoring name nasa ndl net new ngc nist nix node noise notes notify now npm nyt oauth obs observability oci one only
open openai ops oracle org organization ors oss otp over overflow owl package page parse pass passphrase password pat
pay payload people personal phrase platform play plus png poly pool position post prep previous primary private pro
production project proxy pub public publish push pwd query quest rate rates read readonly record recovery redis ref
refresh registration registry relay removal remove repo reporter rest rev ring role root route rpc runner salt sandbox
sas scanner schema sdk search secondary secret seed segment semaphore send sentry serp server service ses session
setup shared shop sign signal signature signing site slack smtp snap source space spaces specific split sport src
stack staging static stats status storage stream subscribe subscription system tax team tele test text time times tio
together tok token tom topic tos total tracker tran translate trigger trip universal update upload use user username
value vat vector virtual vision walk web webhook wif wire wise wit wml work workers workspace write zen zero zip
"""
_COMMON: Final = frozenset(_COMMON_WORDS.split())
_TELLING_MIN: Final = 6
_ALONE_MIN: Final = 4
# Names that end so are found by the gates of assignments.
_ASKS: Final = re.compile(
    r"(?:password|passwd|passphrase|pwd|secret|token|(?:^| )(?:api|access|account|auth|private|client|service|storage|"
    r"encryption|signing|master|admin|shared|license|application|consumer|deploy|webhook) ?key|apikey)s?$"
)
_GIVEN_BY: Final = re.compile(r"(?:^| )(?:key|api|access|auth|pat|app|master|read|write|pass)$")
_HEAD: Final = 120
_NAME_MAX: Final = 48
_MORE_MAX: Final = 20
# Backwards from a value: what opens it, the operator, what closes the name, the name.
_GIVEN_TO: Final = re.compile(
    rb"[\"'`\\([ \t]{0,32}(?:>=|=:{1,3}|==|=\?|=|:|,|>|\|)[ \t]{0,12}[\"'`\\\])}* ]{0,17}([\w.\-][\w. \-]{1,60})"
)
_BEGIN: Final = re.compile(
    rb"(?<![0-9A-Za-z])|(?<![A-Za-z])(?<=[0-9])|(?<=[a-z])(?=[A-Z])|(?<=\\[nrt])|(?<=%[0-9A-F]{2})"
)
_REST: Final = re.compile(rb"[0-9A-Za-z_. -]{0,20}\Z")
_SEPARATORS: Final = (b"_", b".", b" ", b"-")
_WORD_START: Final = re.compile(rb"(?<![0-9A-Za-z])[0-9A-Za-z]|(?<=[a-z0-9])[A-Z]|(?<=[0-9])[a-z]")
# A name of a program; with a few digits, it is one still.
_IDENTIFIER: Final = re.compile(
    rb"_{0,2}(?:[a-z]{1,20}\d{0,2}(?:[_-][a-z]{1,20}\d{0,2}|[_-]\d{1,2}){1,12}"
    rb"|[A-Z]{1,20}\d{0,2}(?:_[A-Z]{1,20}\d{0,2}|_\d{1,2}){1,12})_{0,2}"
)
_WORDS_SHARE_MAX: Final = 0.66
_DIGIT: Final = re.compile(rb"[0-9]")
# How many of the bytes behind such a one are no name's.
_ESCAPES: Final = {b"\\": 1, b"%": 2}

_OPENING: Final = rb"(?:[A-Za-z_][\w.:!&]{0,30}\([ ]?)?[\"'`\\[(<]{0,17}+(?:(?i:bearer|token|basic) )?"
_CLOSING: Final = rb"[\"'`\\\])}*]{0,17}+"
_LINES: Final = rb"(?:\s|\\{1,15}[nrt]){0,32}+"
_OPERATOR: Final = rb"(?:=>|:{1,3}=|:-|[=!]==?|[?|+]?=|:|,|\|\|?|\?\?|->|<-|\(|\xe2\x94\x82)"
_NOUNS: Final = (b"key", b"token", b"secret", b"password", b"passwd", b"pwd", b"auth", b"pat", b"id", b"com")
# How a value may follow the name it belongs to.
_JOINS: Final = (
    _CLOSING + rb"[ \t]{0,16}" + _OPERATOR + rb"(?:\*\*)?[ \t]{0,16}" + _OPENING,
    rb"(?:\[\d{0,4}\])?(?::? ?[\w<>\[\]&'|?*]{1,24}(?: \w{1,12})?) ?:?=[ \t]{0,8}" + _OPENING,
    rb": \(string\) (?:\(len=\d{1,5}\) )?\\{0,15}[\"']",
    rb"(?:" + b"|".join(b"(?<=(?i:%b))" % noun for noun in _NOUNS) + rb")(?:[ \t]|\\{1,15}t){1,24}[\"'`\\]{0,17}",
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
    """One format of a family: its rule, its names, and what its values look like."""

    __slots__ = ("_names", "_spelt", "extent", "rule", "shape")

    def __init__(self, rule: Rule, names: Sequence[str], extent: TokenReader, shape: Shape) -> None:
        self.rule = rule
        self.extent = extent
        self.shape = shape
        self._names = names
        self._spelt: tuple[tuple[bytes, ...], ...] = ()

    def is_named(self, name: bytes) -> bool:
        """Whether this text ends with one of the names, as a word or words of their own."""
        if not self._spelt:
            self._spelt = tuple(tuple(one.lower().encode().split()) for one in self._names)
        lowered = name.lower()
        return any(_ends_with(name, lowered, words) for words in self._spelt)

    def of(self, line: bytes, start: int) -> Sequence[RuleSpan]:
        """The secret that begins at `start`, if there is one of this format."""
        found = self.extent.match(line, start)
        spans, _ = self.extent.of(line, found) if found is not None else ((), 0)
        return tuple((*span, self.rule) for span in spans if self._is_drawn(line[slice(*span)]))

    def _is_drawn(self, value: bytes) -> bool:
        """Whether the value is not itself a name, as of a variable that holds the secret."""
        if len(value) > _NAME_MAX or not self.extent.may_hold_digits:
            return True
        if _DIGIT.search(value) and not _IDENTIFIER.fullmatch(value):
            return True
        if b":" in value:  # no name of a variable: a user and a password, if they are not called just that
            return not only_dummies(value.decode("latin-1"))
        return share_of_words(value.decode("latin-1")) < _WORDS_SHARE_MAX

    def of_cut(self, start: int, end: int) -> Sequence[RuleSpan]:
        """The beginning of a secret of which the rest was cut off."""
        return ((start, end, self.rule),) if end - start < self.shape.shortest else ()


def _ends_with(name: bytes, lowered: bytes, words: Sequence[bytes]) -> bool:
    """Whether the name ends with these words, at most one separator between them, and the rest of a word."""
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


def _spelt(name: str) -> str:
    return "[_. -]?".join(map(re.escape, name.split()))


def gate_of(name: str) -> str | None:
    """The expression that finds a name by one telling word, if it has one."""
    words = name.split()
    word = max((word for word in words if word not in _COMMON), key=len, default="")
    return f"(?i:{re.escape(word)})" if len(word) >= (_TELLING_MIN if len(words) > 1 else _ALONE_MIN) else None


def families(members: Iterable[tuple[Member, Sequence[str]]]) -> Iterator[Family]:
    """One family for each telling word, and one for each kind of assignment."""
    by_gate: dict[str, dict[Member, None]] = {}
    by_name: dict[bytes, list[Member]] = {}
    for member, names in members:
        asking = [name for name in names if _ASKS.search(name)]
        gates = {name: gate_of(name) for name in names if name not in asking}
        for name in names:
            if gates.get(name) is None:
                by_name.setdefault(name.replace(" ", "").lower().encode(), []).append(member)
        for gate in filter(None, gates.values()):
            by_gate.setdefault(gate, {})[member] = None
        for name in _unseen(member, [name for name in names if gates.get(name, "") is None], gates.values()):
            by_gate.setdefault(f"(?i:{_spelt(name)})", {})[member] = None
    for gate, found in by_gate.items():
        yield _family(gate, tuple(found))
    begins = frozenset(name[:_FIRST] for name in by_name)
    owners = lru_cache(_NAMES_KEPT)(lambda name: tuple(_owners(name, by_name, begins)))
    rules = tuple(dict.fromkeys(member.rule for found in by_name.values() for member in found))
    for gate, length in ASSIGNMENT_GATES:
        yield _assigned(gate, length, rules, owners)


def _unseen(member: Member, names: Iterable[str], gates: Iterable[str | None]) -> Iterator[str]:
    """Names made of words of every day, in an example that no gate of assignments or of telling words ends with."""
    shown = member.rule.example.partition("=")[0].replace("_", " ").lower()
    if not (_ASKS.search(shown) or _GIVEN_BY.search(shown) or any(re.search(gate, shown) for gate in gates if gate)):
        yield from (name for name in names if name in shown and not _GIVEN_BY.search(name))


def _owners(name: bytes, by_name: Mapping[bytes, Sequence[Member]], begins: Set[bytes]) -> Iterator[Member]:
    """The members one of whose names begins with a word of this name and goes on nearly to its end."""
    for begin in _WORD_START.finditer(name, max(0, len(name) - _NAME_MAX)):
        rest = name[begin.start() :].translate(None, b"_. -").lower()
        if rest[:_FIRST] not in begins:
            continue
        for end in range(max(2, len(rest) - _MORE_MAX), len(rest) + 1):
            yield from by_name.get(rest[:end], ())


def _assigned(gate: str, length: int, rules: tuple[Rule, ...], owners: Callable[[bytes], Sequence[Member]]) -> Family:
    """A family whose gate ends `length` bytes into a value that is given to a name which asks for a secret."""

    def look(line: bytes, to: int) -> tuple[Sequence[RuleSpan], int]:
        start = to - length
        given = _GIVEN_TO.match(line[max(0, start - _HEAD) : start][::-1])
        if given is None or line[start - 1 : start] == b"\\":
            return (), to
        name = given[1][::-1]
        before = start - given.end(1) - 1
        escape = _ESCAPES.get(line[before : before + 1], 0)
        for member in owners(name[escape:]):
            spans = member.of(line, start)
            if spans:
                return spans, spans[-1][1]
        return (), to

    return opened(Family(rules, (gate,), look))


def _family(gate: str, members: Sequence[Member]) -> Family:
    """A family whose gate ends with a telling part of a name."""

    def look(line: bytes, to: int) -> tuple[Sequence[RuleSpan], int]:
        follows = _FOLLOWS.match(line, to)
        if follows is None:
            return (), to
        start = follows.end()
        name = line[max(0, to - _NAME_MAX) : follows.start("join")]
        for member in members:
            spans = member.of(line, start)
            if spans and member.is_named(name):
                return spans, spans[-1][1]
        end = cut_end(line, start)
        if end - start < CUT_RANDOM or not looks_drawn(line[start:end]):
            return (), to
        for member in members:
            spans = member.of_cut(start, end)
            if spans and member.is_named(name):
                return spans, end
        return (), to

    return Family(tuple(member.rule for member in members), (gate,), look)
