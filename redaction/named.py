"""Formats whose shape says little: a value is theirs only when it is assigned to one of their names.

There are hundreds of them, with several names each. The gate looks for one telling word per name; whether that word is
part of a name that is assigned something at all is asked once per word, for all formats together.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from redaction.assignments import ASSIGNMENT_GATES
from redaction.extent_of import Extent
from redaction.raw import ASSIGN
from redaction.rule import Family, Rule, RuleSpan
from redaction.shape import Shape

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
_BEFORE: Final = 48
# Names that end so are found by the gates of assignments.
_ASKS: Final = re.compile(
    r"(?:password|passwd|passphrase|pwd|secret|token|(?:^| )(?:api|access|account|auth|private|client|service|storage|"
    r"encryption|signing|master|admin|shared|license|application|consumer|deploy|webhook) ?key|apikey)s?$"
)
_HEAD: Final = 120
# Backwards from a value: what opens it, the operator, what closes the name, the name.
_GIVEN_TO: Final = re.compile(
    rb"[\"'`\\([ \t]{0,32}(?:>=|=:|==|=\?|=|:|,|>|\|)[ \t]{0,12}[\"'`\\\])}* ]{0,17}([\w.\-][\w. \-]{1,60})"
)
_GIVEN: Final = re.compile(ASSIGN.encode())
_ASSIGNED: Final = re.compile(rb"[0-9A-Za-z_. -]{0,40}" + ASSIGN.encode())
_REST: Final = rb"[0-9A-Za-z_. -]{0,20}" + ASSIGN.encode() + rb"\Z"


def _value_start(line: bytes, to: int, shape: Shape | None) -> int:
    """Where the value begins that is assigned to the name at `to`; -1 if nothing is."""
    if shape is not None:
        first = max(0, to - shape.shortest - _BEFORE)
        starts = (found.end() for found in _GIVEN.finditer(line, first, to))
        return max((start for start in starts if start <= to - shape.shortest), default=-1)
    assigned = _ASSIGNED.match(line, to)
    return assigned.end() if assigned is not None else -1


class Member:
    """One format of a family: its rule, its names, and what its values look like."""

    __slots__ = ("_compiled", "_names", "extent", "rule", "shape")

    def __init__(self, rule: Rule, names: Sequence[str], extent: Extent, shape: Shape) -> None:
        self.rule = rule
        self.extent = extent
        self.shape = shape
        self._names = b"(?i:" + b"|".join(_spelt(name).encode() for name in names) + b")" + _REST
        self._compiled: re.Pattern[bytes] | None = None

    def is_named(self, name: bytes) -> bool:
        """Whether this text, with the assignment at its end, ends with one of the names."""
        if self._compiled is None:
            self._compiled = re.compile(self._names)
        return self._compiled.search(name) is not None


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
        telling = [gate for name in names if name not in asking and (gate := gate_of(name)) is not None]
        for name in asking:
            by_name.setdefault(name.replace(" ", "").lower().encode(), []).append(member)
        for gate in telling:
            by_gate.setdefault(gate, {})[member] = None
        if not asking and not telling:  # words of every day: they count only with a value of the right shape
            joined = "|".join(map(_spelt, names))
            shape = f"(?i:{joined})[0-9A-Za-z_. -]{{0,20}}{ASSIGN}{member.shape.gate}"
            yield _family(shape, (member,), member.shape)
    for gate, found in by_gate.items():
        yield _family(gate, tuple(found))
    for gate, length in ASSIGNMENT_GATES:
        yield _assigned(gate, length, by_name)


def _assigned(gate: str, length: int, by_name: Mapping[bytes, Sequence[Member]]) -> Family:
    """A family whose gate ends `length` bytes into a value that is given to a name which asks for a secret."""

    def look(line: bytes, to: int) -> tuple[Sequence[RuleSpan], int]:
        start = to - length
        given = _GIVEN_TO.match(line[max(0, start - _HEAD) : start][::-1])
        if given is None:
            return (), to
        name = given[1].translate(None, b"_. -").lower()[::-1]
        for at in range(len(name)):
            for member in by_name.get(name[at:], ()):
                found = member.extent.pattern().match(line, start)
                spans, _ = member.extent.of(line, found) if found is not None else ((), 0)
                if spans:
                    return tuple((*span, member.rule) for span in spans), spans[-1][1]
        return (), to

    rules = dict.fromkeys(member.rule for members in by_name.values() for member in members)
    return Family(tuple(rules), (gate,), look)


def _family(gate: str, members: Sequence[Member], shape: Shape | None = None) -> Family:
    """A family whose gate ends with a name or, if the shape of its values is given, with the shortest value."""

    def look(line: bytes, to: int) -> tuple[Sequence[RuleSpan], int]:
        start = _value_start(line, to, shape)
        if start < 0:
            return (), to
        name = b""
        for member in members:
            found = member.extent.pattern().match(line, start)
            if found is None:
                continue
            spans, _ = member.extent.of(line, found)
            name = name or line[max(0, to - _BEFORE) : start]
            if spans and member.is_named(name):
                return tuple((*span, member.rule) for span in spans), spans[-1][1]
        return (), to

    return Family(tuple(member.rule for member in members), (gate,), look)
