"""The comparison reports what it must: a changed byte, a missing case, a changed fact; words count in texts only."""

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from tests.golden.comparing import Outcome, Reword, compare, read_words
from tests.golden.facts import facts_of
from tests.golden.store import Goldens, Kind

LINK = '<a href="/x?a=1&amp;b=2">3 events</a>'
PAGE = f'<main id="m">{LINK} <b>kept here</b><pre> a\n b</pre><time datetime="T">now</time></main>'
Sides = tuple[Goldens, Goldens]


@pytest.fixture
def sides(tmp_path: Path) -> Iterator[Sides]:
    with ExitStack() as stack:
        yield (
            stack.enter_context(closing(Goldens(tmp_path / "before", fresh=True))),
            stack.enter_context(closing(Goldens(tmp_path / "after", fresh=True))),
        )


def outcome(sides: Sides, reword: Reword = str) -> Outcome:
    [only] = compare(*sides, lambda _: reword)
    return only


def put(sides: Sides, before: str, after: str, kind: Kind) -> None:
    for goldens, content in zip(sides, (before, after), strict=True):
        goldens.put("group", "case", content.encode(), kind)


def page(text: str) -> str:
    return "\n".join(facts_of(text))


def test_equal_cases_are_counted(sides: Sides) -> None:
    put(sides, "the same", "the same", "bytes")

    assert (outcome(sides).equal, outcome(sides).ok) == (1, True)


def test_a_changed_byte_is_reported_with_its_place(sides: Sides) -> None:
    put(sides, "x" * 500 + "1", "x" * 500 + "2", "bytes")

    found = outcome(sides)

    assert (found.ok, found.equal, found.different) == (False, 0, 1)
    assert "byte 500 of 501" in found.told[0]


@pytest.mark.parametrize(("side", "told"), [(0, "only before"), (1, "only after")])
def test_a_case_of_one_side_is_reported(sides: Sides, side: int, told: str) -> None:
    put(sides, "the same", "the same", "bytes")
    sides[side].put("group", "another", b"", "bytes")

    found = outcome(sides)

    assert (found.ok, found.equal, found.missing + found.new) == (False, 1, 1)
    assert found.told == [f"another: {told}"]


def test_a_group_of_one_side_is_reported(sides: Sides) -> None:
    sides[0].put("group", "case", b"", "bytes")

    assert not outcome(sides).ok


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("3 events", "4 events"),
        ("/x?a=1", "/y?a=1"),
        ('id="m"', 'id="n"'),
        ("<b>kept here</b>", ""),
        (" a\n b", " a b"),
        ('datetime="T"', 'datetime="U"'),
        (f"{LINK} <b>kept here</b>", f"<b>kept here</b> {LINK}"),
    ],
)
def test_a_changed_fact_of_a_page_is_reported(sides: Sides, old: str, new: str) -> None:
    assert old in PAGE
    put(sides, page(PAGE), page(PAGE.replace(old, new)), "facts")

    assert outcome(sides).different == 1


def test_tags_classes_and_space_between_elements_are_no_facts(sides: Sides) -> None:
    again = (
        PAGE.replace("<b>", "\n  <strong class='x'>")
        .replace("</b>", "</strong>\n  ")
        .replace("3 events", "\n 3  events ")
    )
    put(sides, page(PAGE), page(again), "facts")

    assert outcome(sides).ok


def test_words_are_replaced_in_texts_and_nowhere_else(sides: Sides, tmp_path: Path) -> None:
    (tmp_path / "words.toml").write_text('[pages]\n"kept" = "quarantined"\n"kept here" = "pending"\n')
    reword = read_words(tmp_path / "words.toml")
    put(sides, page(PAGE), page(PAGE.replace("kept here", "pending")), "facts")
    for kind in ("bytes", "facts"):
        for goldens, word in zip(sides, ("kept", "quarantined"), strict=True):
            goldens.put("group", f"of {kind}", f"href\t/{word}".encode(), kind)

    found = outcome(sides, reword)

    assert (found.equal, found.reworded, found.different) == (1, 1, 2)


def test_a_table_may_be_as_wide_as_its_new_words(sides: Sides, tmp_path: Path) -> None:
    (tmp_path / "words.toml").write_text('[pages]\nkept = "quarantined"\n')
    put(sides, "NAME  STATE\none   kept   3", "NAME  STATE\none   quarantined  3", "text")

    assert outcome(sides, read_words(tmp_path / "words.toml")).reworded == 1
    assert outcome(sides).different == 1


def test_the_words_of_the_project_can_be_read() -> None:
    assert read_words()("Sessions") == "Sessions"
