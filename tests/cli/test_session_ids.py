"""Any unique beginning of a session id will do, and no more of it is shown than is needed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.cli.session_ids import resolve_id, short_ids
from exporter.errors import UsageError

KNOWN = ["3f2ab1c0-0000-4000-8000-000000000001", "3f2ab1c0-0000-4000-8000-000000000002", "9c0d11e2-aaaa"]


@pytest.mark.parametrize(("given_id", "meant"), [("9", KNOWN[2]), ("9C0D", KNOWN[2]), (KNOWN[0], KNOWN[0])])
def test_a_unique_beginning_names_the_session(given_id: str, meant: str) -> None:
    assert resolve_id(given_id, KNOWN) == meant


def test_an_id_that_is_the_beginning_of_another_names_itself() -> None:
    assert resolve_id("abc", ["abc", "abcdef"]) == "abc"


def test_an_unknown_beginning_points_to_the_list() -> None:
    with pytest.raises(UsageError, match="no session id starts with 'ff'") as raised:
        resolve_id("ff", KNOWN)

    assert raised.value.hint == "see: exporter sessions list"


def test_an_ambiguous_beginning_names_those_it_could_be() -> None:
    with pytest.raises(UsageError, match="2 session ids start with '3f2a'") as raised:
        resolve_id("3f2a", KNOWN)

    assert all(one in raised.value.message for one in KNOWN[:2])
    assert raised.value.hint == "use a longer prefix"


def test_ids_are_shortened_to_eight_characters_where_that_is_unambiguous() -> None:
    assert short_ids(KNOWN) == {KNOWN[0]: KNOWN[0], KNOWN[1]: KNOWN[1], KNOWN[2]: "9c0d11e2"}
    assert short_ids([]) == {}


@given(st.lists(st.text("01-", min_size=1, max_size=20), unique=True))
def test_what_is_shown_of_an_id_finds_it_again(ids: list[str]) -> None:
    shown = short_ids(ids)

    assert [resolve_id(shown[one], ids) for one in ids] == ids
