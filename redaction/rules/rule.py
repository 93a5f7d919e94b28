"""What a rule is: gates that say where a secret of its kind may be, and a function that extracts it there."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Final, Literal, TypeAlias, TypeVar

import msgspec

from redaction.rules.checks import CHECKS, PROOFS

Confidence: TypeAlias = Literal["high", "medium", "low"]
# How sure a single finding is; a proof is surer than any pattern.
Certainty: TypeAlias = Literal["proven", "high", "medium", "low"]
Spans: TypeAlias = Sequence[tuple[int, int]]
# The spans of secrets, and the place up to which hits hold nothing new for the rule.
Extraction: TypeAlias = tuple[Spans, int]
# Extracts the secrets at a hit: the line, and where the match of the gate ends.
Extract: TypeAlias = Callable[[bytes, int], Extraction]
# How many bytes before and after the end of a trigger the gates of its rule may match.
Reach: TypeAlias = tuple[int, int]
AROUND: Final[Reach] = (160, 400)
# Of gates that are searched with open counts first: no match of one is longer.
OPENED_REACH: Final[Reach] = (256, 0)
# How far behind the name of a format its value may be.
VALUES_REACH: Final = 240
_COUNT: Final = re.compile(r"\{([01]),\d+\}")


_RAISED: Final[Mapping[Confidence, Confidence]] = {"high": "high", "medium": "high", "low": "medium"}


@dataclass(frozen=True, slots=True)
class TokenCheck:
    """A structure of secrets of a kind; `proves` if no other text has it by chance."""

    passes: Callable[[bytes], bool]
    proves: bool


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """One kind of secret.

    `gates` are expressions that Hyperscan and `re` understand alike; in every secret of this kind, or shortly before
    it, a match of one of them ends. `extract(line, to)` is called for each such end and returns the spans of secrets in
    the raw line (escapes not resolved) and the place up to which further ends hold nothing new. `example` and `counter`
    are templates of a text that must be found and of one that must not. A rule with costly gates has triggers (`when`),
    of which one is in every line that concerns it: the gates are tried only within `reach` of a trigger. `check` says
    how sure a finding is, not whether it is one.
    """

    id: str
    provider: str
    name: str
    gates: tuple[str, ...]
    extract: Extract
    confidence: Confidence = "high"
    example: str = ""
    counter: str = ""
    when: tuple[str, ...] = ()
    reach: Reach = AROUND
    check: TokenCheck | None = None
    is_numbers: bool = False
    """Its secrets are numbers of a list, so their marker is put in quotes where the list is one of JSON."""
    is_from_detect_secrets: bool = field(init=False)
    """The rule is a detector of detect-secrets; the rules of ours are more precise."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "is_from_detect_secrets", self.id.startswith("detect-secrets."))

    def certainty_of(self, secret: bytes) -> Certainty:
        """How sure a finding of this secret (without escapes) is: as sure as the rule, unless a check says more."""
        if self.check is None:
            return self.confidence
        if not self.check.passes(secret):
            return "low"
        return "proven" if self.check.proves else _RAISED[self.confidence]


class RuleRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a row of a table says of its rule, whatever table it is."""

    id: Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9][a-z0-9.-]{0,47}$")]
    provider: str
    name: str
    example: str
    counter: str
    confidence: Confidence = "high"
    check: str | None = None

    def rule(self, gates: tuple[str, ...], extract: Extract, when: tuple[str, ...] = ()) -> Rule:
        """The rule of this row."""
        check = TokenCheck(CHECKS[self.check], self.check in PROOFS) if self.check is not None else None
        return Rule(
            self.id,
            self.provider,
            self.name,
            gates,
            extract,
            self.confidence,
            self.example,
            self.counter,
            when,
            check=check,
        )


# A span and its rule.
RuleSpan: TypeAlias = tuple[int, int, Rule]


@dataclass(frozen=True, slots=True, eq=False)
class Family:
    """Rules that share a gate, so that one function extracts the secrets of all of them."""

    rules: tuple[Rule, ...]
    gates: tuple[str, ...]
    extract: Callable[[bytes, int], tuple[Sequence[RuleSpan], int]]
    when: tuple[str, ...] = ()
    reach: Reach = AROUND
    values: tuple[str, ...] = ()
    """If there are any, a match of a gate counts only with a match of one of these in the `VALUES_REACH` bytes behind
    it."""


_Owner = TypeVar("_Owner", Rule, Family)


def with_open_counts(rule: _Owner) -> _Owner:
    """The rule with its gates searched with open counts first, with which Hyperscan is much faster.

    The open form matches whatever the gate matches. No gate may match more than the reach.
    """
    counts = (_COUNT.sub(lambda count: "*" if count[1] == "0" else "+", gate) for gate in rule.gates)
    return replace(rule, when=tuple(counts), reach=OPENED_REACH)
