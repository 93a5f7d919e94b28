"""What the server leaves out of a search has not the words; what it cannot tell is looked at."""

import pytest

from exporter.missioncontrol.search.index import Term
from exporter.missioncontrol.search.search_query import results, understand
from exporter.missioncontrol.store.port import Database
from exporter.missioncontrol.store.postgresql import scan
from exporter.missioncontrol.store.postgresql.store import PostgresStore
from tests.missioncontrol.store_contract import event, register, store_events

TEXTS = {
    "plain": "the wombat digs",
    "upper": "The WOMBAT digs",
    "line": "one\\nwombat",
    "number": "\\u0077ombat",
    "accent": "un \u00e9t\u00e9, wombat\u2019s",
    "kelvin": "10 \u212aelvin",
    "large": "wombat " * 4000,
    "nothing": "the echidna digs",
    "backslash": "C:\\\\\\\\users\\\\\\\\wom",
}


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("wombat", {"plain", "upper", "line", "number", "accent", "large"}),
        ("WOM", {"plain", "upper", "line", "number", "accent", "large", "backslash"}),
        ("kelvin", {"kelvin"}),
        ("\u00e9t\u00e9", {"accent"}),
        ("echidna digs", {"nothing"}),
        ('"wombat digs"', {"plain", "upper"}),
        ("platypus", set()),
    ],
)
def test_every_event_with_the_words_is_found(postgres_url: str, query: str, found: set[str]) -> None:
    understood = understand(query)
    assert understood is not None

    def search(database: Database) -> set[str]:
        page, _ = results(database, scan.ScannedEvents(database), understood, None, session_id=None, limit=50)
        return {one["event"] for one in page}

    with PostgresStore(postgres_url) as store:
        store.do(register("s"))
        store.do(store_events("s", *[event(id, text) for id, text in TEXTS.items()]))

        assert store.read_now(search) == found


def test_what_cannot_match_is_left_out_and_parts_end_at_a_number(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan, "_AT_ONCE", 4)
    with PostgresStore(postgres_url) as store:
        store.do(register("s"))
        first = store.do(store_events("s", *[event(f"e{n}", "wombat" if n == 2 else "mole") for n in range(10)])).first

        numbers = store.read_now(lambda database: list(scan.ScannedEvents(database).matches([Term("wombat")], 1 << 62)))

    assert [number - first for number in numbers] == [6, 2, 0]
