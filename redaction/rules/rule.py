"""What a rule is: where a secret of its kind may be, and how to tell its extent there."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal, TypeAlias, TypeVar

Confidence: TypeAlias = Literal["high", "medium", "low"]
# How sure a single finding is: a proof says more than any shape.
Certainty: TypeAlias = Literal["proven", "high", "medium", "low"]
Spans: TypeAlias = Sequence[tuple[int, int]]
# Where the secrets are, and up to where the rule need not look again.
Look: TypeAlias = Callable[[bytes, int], tuple[Spans, int]]
# How many bytes before and behind the end of what is in every line that concerns a rule its gates may begin and end.
Reach: TypeAlias = tuple[int, int]
AROUND: Final[Reach] = (160, 400)
# Of gates that are looked for with open counts first: no match of one is longer.
OPENED_REACH: Final[Reach] = (256, 0)
_COUNT: Final = re.compile(r"\{([01]),\d+\}")


_RAISED: Final[Mapping[Confidence, Confidence]] = {"high": "high", "medium": "high", "low": "medium"}


@dataclass(frozen=True, slots=True)
class TokenCheck:
    """A structure that secrets of a kind have; `proves` where no other text has it by chance."""

    passes: Callable[[bytes], bool]
    proves: bool


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """One kind of secret.

    `gates` are expressions that Hyperscan and `re` understand alike; one of them ends somewhere in every secret
    of this kind or shortly before it. `look(line, to)` is asked about each such end and answers with the spans of
    secrets in the raw line (escapes not resolved) and with `seen`: ends up to there hold nothing new. `example` and
    `counter` are templates of a text that must be found and of one that must not. A rule with costly gates says in
    `when` what one of is in every line that concerns it: only within `reach` of there the gates are tried. `check`
    says how sure a finding is, not whether it is one.
    """

    id: str
    provider: str
    name: str
    gates: tuple[str, ...]
    look: Look
    confidence: Confidence = "high"
    example: str = ""
    counter: str = ""
    when: tuple[str, ...] = ()
    reach: Reach = AROUND
    check: TokenCheck | None = None
    is_borrowed: bool = field(init=False)
    """It is detect-secrets': a rule of ours says better what a secret is."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "is_borrowed", self.id.startswith("detect-secrets."))

    def certainty_of(self, secret: bytes) -> Certainty:
        """How sure it is that this (escapes resolved) is such a secret: the rule's confidence, unless a check knows."""
        if self.check is None:
            return self.confidence
        if not self.check.passes(secret):
            return "low"
        return "proven" if self.check.proves else _RAISED[self.confidence]


# A span, and the rule that it is of.
RuleSpan: TypeAlias = tuple[int, int, Rule]


@dataclass(frozen=True, slots=True, eq=False)
class Family:
    """Rules that share a gate, so that one look decides for all of them."""

    rules: tuple[Rule, ...]
    gates: tuple[str, ...]
    look: Callable[[bytes, int], tuple[Sequence[RuleSpan], int]]
    when: tuple[str, ...] = ()
    reach: Reach = AROUND


_Owner = TypeVar("_Owner", Rule, Family)


def opened(rule: _Owner) -> _Owner:
    """The rule with its gates looked for with open counts first, which Hyperscan is much faster with.

    What a gate matches its open form matches, too. None of the gates may match more than the reach says.
    """
    counts = (_COUNT.sub(lambda count: "*" if count[1] == "0" else "+", gate) for gate in rule.gates)
    return replace(rule, when=tuple(counts), reach=OPENED_REACH)
