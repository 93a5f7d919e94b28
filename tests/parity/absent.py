"""What spans of the CLI tell that ours, which are about the same, do not."""

from tests.parity import reasons
from tests.parity.compare import Comparison

_ROOT_MS_MAX = 1_000


def absent_events(one: Comparison) -> set[str]:
    """Return the names of span events that our span has none of."""
    return {
        name
        for cli, ours in one.matched
        for name, _ in cli.events
        if name not in {event.name.name for event in ours.events}
    }


def absent_attributes(one: Comparison) -> set[str]:
    """Return the keys of attributes that our span has not."""
    semconv = one.session.semconv
    return {
        key
        for cli, ours in one.matched
        for key in cli.attributes.keys() - {key for name in ours.attributes for key in name.spellings(semconv)}
    }


def attributes_with_a_reason(one: Comparison) -> set[str]:
    """Return the keys that a session of this version may lack."""
    if one.session.version != "1.0.48":
        return {*reasons.ATTRIBUTES}
    return {*reasons.ATTRIBUTES, *reasons.OLD_ATTRIBUTES, *(key for _, key in reasons.TOKENS)}


def roots_that_end_elsewhere(one: Comparison) -> int:
    """Return how many roots end more than a second before or after the CLI's."""
    return sum(cli.parent is None and abs(cli.end_ns - ours.end_ns) > _ROOT_MS_MAX * 1e6 for cli, ours in one.matched)
