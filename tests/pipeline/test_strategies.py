"""What differs between events and records is asked of the feed, never found out by looking which one it is."""

import re
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2] / "exporter"
_QUESTION = re.compile(
    r"\b(mapping|counting|mapper|feed)\b is (not )?None|isinstance\([^)]*\b(EventFeed|RecordFeed|MetricSender)\b"
)


@pytest.mark.parametrize("package", ["pipeline", "daemon"])
def test_nobody_looks_which_feed_it_is(package: str) -> None:
    modules = sorted((_ROOT / package).glob("*.py"))
    assert len(modules) > 5

    assert [f"{one.name}: {found[0]}" for one in modules for found in _QUESTION.finditer(one.read_text())] == []


@pytest.mark.parametrize(
    "line", ["if sink_state.mapping is not None:", "if counting is None", "isinstance(feed, RecordFeed)"]
)
def test_such_a_question_would_be_found(line: str) -> None:
    assert _QUESTION.search(line)
