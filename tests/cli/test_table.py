"""Tables align, and fit a narrow terminal without losing what matters."""

from operator import itemgetter

from hypothesis import example, given
from hypothesis import strategies as st

from exporter.cli.output.table import Cell, Column, Palette, TerminalView, pairs, table
from exporter.cli.output.text import columns

HEADS = (
    Column("ID", itemgetter(0)),
    Column("EVENTS", itemgetter(1), right=True, spare=1),
    Column("HOST", itemgetter(2), spare=2),
    Column("TITLE", itemgetter(3), flex=True),
)
ROWS = [
    [Cell("3f2ab1c0"), Cell("34"), Cell("laptop"), Cell("Why the tide table fails at night")],
    [Cell("9c0d11e2"), Cell("12,480"), Cell("workstation"), Cell("灯台")],
]


def test_columns_are_aligned_and_numbers_stand_right() -> None:
    assert table(HEADS, ROWS, TerminalView(None)).splitlines() == [
        "ID        EVENTS  HOST         TITLE",
        "3f2ab1c0      34  laptop       Why the tide table fails at night",
        "9c0d11e2  12,480  workstation  灯台",
    ]


def test_the_flexible_column_is_cut_first() -> None:
    assert table(HEADS, ROWS, TerminalView(50)).splitlines()[1] == "3f2ab1c0      34  laptop       Why the tide table…"


def test_spare_columns_leave_when_cutting_is_not_enough() -> None:
    assert table(HEADS, ROWS, TerminalView(35)).splitlines()[0] == "ID        EVENTS  TITLE"
    assert table(HEADS, ROWS, TerminalView(24)).splitlines()[1] == "3f2ab1c0  Why the tide…"


def test_a_column_with_nothing_in_it_is_not_shown() -> None:
    rows = [[Cell("3f2ab1c0"), Cell("34"), Cell(""), Cell("")]]

    assert table(HEADS, rows, TerminalView(None)) == "ID        EVENTS\n3f2ab1c0      34"


@given(
    st.integers(24, 120),
    st.lists(st.lists(st.text("ab 灯", min_size=1, max_size=60), min_size=4, max_size=4), min_size=1),
)
@example(24, [["aaaaa灯灯灯", "a", "a", "aaaaaa灯灯灯"]])
def test_no_line_is_wider_than_the_terminal(width: int, texts: list[list[str]]) -> None:
    rows = [[Cell(row[0][:8]), Cell(row[1]), Cell(row[2]), Cell(row[3])] for row in texts]

    shown = table(HEADS, rows, TerminalView(width))

    assert max(columns(line) for line in shown.split("\n")) <= width


def test_colour_does_not_move_anything() -> None:
    rows = [[Cell("3f2ab1c0", "good"), Cell("34"), Cell("a", "bad"), Cell("b")]]

    colored = table(HEADS, rows, TerminalView(palette=Palette(enabled=True)))

    assert "\x1b[32m3f2ab1c0\x1b[0m      34  \x1b[31ma\x1b[0m     b" in colored


def test_pairs_without_a_value_are_left_out() -> None:
    rows = [("title", Cell("Tides")), ("model", Cell("")), ("last activity", Cell("just now"))]

    assert pairs(rows, TerminalView()) == "title          Tides\nlast activity  just now"
