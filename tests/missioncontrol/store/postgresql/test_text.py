"""Texts come back as they were, whatever is in them, and what has neither NUL nor the mark is stored as it is."""

import hypothesis.strategies as st
from hypothesis import given

from exporter.missioncontrol.store.postgresql.arrays import array_of
from exporter.missioncontrol.store.postgresql.store import PostgresStore
from exporter.missioncontrol.store.postgresql.text import loaded, stored

ODD = st.text(st.sampled_from("\0\U0010ffff01a\u00e9\U0001f600"))


@given(ODD | st.text(st.characters(exclude_categories=["Cs"])))
def test_a_text_comes_back_and_is_none_that_the_engine_refuses(text: str) -> None:
    assert loaded(stored(text).encode()) == text
    assert "\0" not in stored(text)


@given(ODD, ODD)
def test_two_texts_are_stored_as_two(one: str, other: str) -> None:
    assert (stored(one) == stored(other)) is (one == other)


def test_columns_come_back_through_the_server(postgres_url: str) -> None:
    texts: list[object] = ["", "a\0b", "\U0010ffff0", None, "plain", '{"quoted, \\'] * 700
    sent: dict[str, list[object]] = {
        "text": texts,
        "bigint": [0, -(2**63), 2**63 - 1, None],
        "bytea": [b"", b"\0\xff", None],
    }

    def echo(database: object, kind: str) -> list[object]:
        raw = database.opened.raw  # type: ignore[attr-defined]
        return [value for (value,) in raw.execute("SELECT unnest($1)", (array_of(kind, sent[kind]),), binary=True)]

    with PostgresStore(postgres_url) as store:
        for kind, values in sent.items():
            assert store.read_now(lambda database, kind=kind: echo(database, kind)) == values  # type: ignore[misc]
