"""Where there is no Hyperscan the same rules find the same, slower."""

import pytest

from redaction.engine import Engine, Masked, Redaction
from redaction.rules.examples import expanded
from redaction.rules.formats import built_in_pack
from tests.redaction.contract import CLEAN_TEXTS
from tests.redaction.events import event
from tests.redaction.made_up import KINDS, make
from tests.shared import CACHE

KEY = b"a key of the tests"
FASTEST = Engine(KEY, cache_dir=CACHE)
BUDGET_MS = 60_000.0
EXAMPLES = [expanded(row.example) for row, _ in built_in_pack(CACHE).rows]
TEXTS = (*EXAMPLES, *(make(kind, 5).text for kind in KINDS), *CLEAN_TEXTS)
TOGETHER = 12


def shown(result: Redaction) -> object:
    """What leaves, and by which rules."""
    return (result.line, result.rules) if isinstance(result, Masked) else result


@pytest.mark.slow
def test_results_are_those_of_the_fastest_engine() -> None:
    engine = Engine(KEY, engine="re", cache_dir=CACHE)

    for start in range(0, len(TEXTS), TOGETHER):
        line = event("\n".join(TEXTS[start : start + TOGETHER]))

        assert shown(engine.redact(line, BUDGET_MS)) == shown(FASTEST.redact(line, BUDGET_MS))
