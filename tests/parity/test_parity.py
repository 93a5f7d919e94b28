"""Our spans against the CLI's own telemetry, in captures of real sessions and in our own fixtures."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.parity.compare import Comparison, compare, p95, roots_that_end_elsewhere
from tests.parity.document import document
from tests.parity.everything import differences
from tests.parity.explained import rows, unexplained
from tests.parity.oracle import captures
from tests.parity.reasons import ENDS, SPANS
from tests.parity.table import table
from tests.shared import REAL

DOCUMENT = Path(__file__).parents[2] / "docs" / "parity.md"
COMPARISONS = [compare(session) for session in captures()]
EACH = [pytest.param(one, id=f"{number}-{one.session.name}") for number, one in enumerate(COMPARISONS)]


def test_the_captures_are_here() -> None:
    if not REAL.is_dir():
        pytest.skip(f"PARITY IS CHECKED ON OUR OWN FIXTURES ONLY: there are no captures in {REAL}")

    assert len(COMPARISONS) == 19 + 10


@pytest.mark.parametrize("one", EACH)
def test_every_span_that_events_can_give_is_here(one: Comparison) -> None:
    assert [span.name for span in one.missing] == []


@pytest.mark.parametrize("one", EACH)
def test_what_cannot_be_derived_has_a_name(one: Comparison) -> None:
    assert {reason for _, reason in one.underivable} <= SPANS.keys()


@pytest.mark.parametrize("one", EACH)
def test_names_and_parents_are_the_same(one: Comparison) -> None:
    assert one.other_names == []
    assert one.other_parents == []


@pytest.mark.parametrize("one", EACH)
def test_tokens_are_the_same(one: Comparison) -> None:
    assert one.tokens > 0
    assert one.other_tokens == []


@pytest.mark.parametrize("one", EACH)
def test_notifications_are_the_same_in_name_type_and_value(one: Comparison) -> None:
    in_the_log = sum(b'"type":"system.notification"' in line for line in one.session.lines)

    assert one.notifications == in_the_log
    assert one.other_notifications == []


@pytest.mark.parametrize(
    ("operation", "edge", "apart_ms_max"),
    [("execute_tool", "start_ns", 5), ("execute_tool", "end_ns", 5), ("chat", "start_ns", 12), ("chat", "end_ns", 12)],
)
def test_times_are_as_close_as_the_log_allows(operation: str, edge: str, apart_ms_max: float) -> None:
    apart = [value for one in COMPARISONS for value in one.apart_ms(operation, edge)]

    assert len(apart) >= 20
    assert p95(apart) <= apart_ms_max


@pytest.mark.parametrize("one", EACH)
def test_every_difference_has_a_reason(one: Comparison) -> None:
    assert unexplained(differences(one), one.session) == []


def test_every_reason_explains_something() -> None:
    if not REAL.is_dir():
        pytest.skip(f"our own fixtures lack much: there are no captures in {REAL}")
    found = [(one.session, differences(one)) for one in COMPARISONS]

    unused = [
        row
        for row in rows()
        if not row.fresh and not any(row.explains(each, by) for by, some in found for each in some)
    ]

    assert unused == []


def test_a_difference_that_has_no_reason_is_found() -> None:
    session = next(each.session for each in COMPARISONS if each.session.version == "1.0.102")
    spans = [
        replace(span, attributes={**span.attributes, "made.up": 1, "gen_ai.operation.name": "x"}, status={"code": 2})
        for span in session.cli
    ]
    changed = replace(session, cli=spans)

    found = {(one.name, one.what) for one in unexplained(differences(compare(changed)), changed)}

    assert found >= {("made.up", "absent"), ("gen_ai.operation.name", "value"), ("status", "value")}


@pytest.mark.parametrize("one", EACH)
def test_a_root_ends_where_the_cli_ends_it_unless_that_has_a_reason(one: Comparison) -> None:
    assert bool(roots_that_end_elsewhere(one)) == (one.session.name in ENDS)


def test_the_document_is_made_from_the_tables() -> None:
    assert DOCUMENT.read_text("utf-8") == document()


def test_the_table_has_a_row_for_every_session() -> None:
    lines = table(COMPARISONS).splitlines()

    assert [line.split()[0] for line in lines[1 : len(COMPARISONS) + 2]] == [
        *(one.session.name for one in COMPARISONS), "all",
    ]  # fmt: skip
