"""What makes a dashboard readable: nothing overlaps, everything has a unit and says what it answers."""

import itertools
from pathlib import Path
from typing import Any, Final

import pytest

from tests.dashboards.boards import PATHS, board, panels

WIDTH: Final = 24
WITHOUT_UNIT: Final = {"logs", "nodeGraph"}
SOURCES: Final = {"prometheus": "${metrics}", "tempo": "${traces}", "loki": "${logs}"}

every_board = pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)


def _rectangle(panel: dict[str, Any]) -> tuple[int, int, int, int]:
    place = panel["gridPos"]
    x, y = place.get("x", 0), place.get("y", 0)
    return x, y, x + place["w"], y + place["h"]


def _overlap(one: dict[str, Any], other: dict[str, Any]) -> bool:
    left, top, right, bottom = _rectangle(one)
    other_left, other_top, other_right, other_bottom = _rectangle(other)
    return left < other_right and other_left < right and top < other_bottom and other_top < bottom


@every_board
def test_panels_have_ids_of_their_own(path: Path) -> None:
    ids = [panel["id"] for panel in board(path)["panels"]]

    assert len(ids) == len(set(ids))
    assert all(isinstance(number, int) and number > 0 for number in ids)


@every_board
def test_no_panel_lies_on_another_or_beyond_the_edge(path: Path) -> None:
    placed = board(path)["panels"]

    assert [(a["title"], b["title"]) for a, b in itertools.combinations(placed, 2) if _overlap(a, b)] == []
    assert all(_rectangle(panel)[2] <= WIDTH for panel in placed)


@every_board
def test_every_panel_says_which_question_it_answers(path: Path) -> None:
    assert [panel["title"] for panel in panels(path) if "?" not in panel.get("description", "")] == []


@every_board
def test_titles_tell_the_panels_apart(path: Path) -> None:
    titles = [panel["title"] for panel in panels(path)]

    assert len(titles) == len(set(titles))


@every_board
def test_figures_have_a_unit(path: Path) -> None:
    without = [
        panel["title"]
        for panel in panels(path)
        if panel["type"] not in WITHOUT_UNIT and not panel["fieldConfig"]["defaults"].get("unit")
    ]

    assert without == []


@every_board
def test_data_sources_are_chosen_by_variables_that_exist(path: Path) -> None:
    variables = {variable["name"]: variable for variable in board(path)["templating"]["list"]}
    wrong = [
        (panel["title"], source)
        for panel in panels(path)
        for source in (panel["datasource"], *(target["datasource"] for target in panel["targets"]))
        if source["uid"] != SOURCES[source["type"]]
    ]

    assert wrong == []
    assert {name: variables[name[2:-1]]["query"] for name in SOURCES.values()} == {v: k for k, v in SOURCES.items()}


@every_board
def test_a_panel_and_its_queries_ask_the_same_data_source(path: Path) -> None:
    mixed = [
        panel["title"]
        for panel in panels(path)
        if {target["datasource"]["uid"] for target in panel["targets"]} != {panel["datasource"]["uid"]}
    ]

    assert mixed == []


@every_board
def test_only_a_table_asks_prometheus_for_a_table(path: Path) -> None:
    # Elsewhere the rows of a table would be taken for the values of one series.
    for panel in panels(path):
        formats = {target.get("format") for target in panel["targets"] if target["datasource"]["type"] == "prometheus"}

        assert formats <= ({"table"} if panel["type"] == "table" else {None}), panel["title"]


@every_board
def test_queries_of_a_panel_have_names_of_their_own(path: Path) -> None:
    for panel in panels(path):
        references = [target["refId"] for target in panel["targets"]]

        assert len(references) == len(set(references)) > 0, panel["title"]


def test_every_dashboard_has_an_address_of_its_own_and_leads_to_the_others() -> None:
    uids = [board(path)["uid"] for path in PATHS]

    assert len(uids) == len(set(uids))
    assert all(len(uid) <= 40 for uid in uids)
    for path in PATHS:
        assert board(path)["tags"] == [link_tag for link in board(path)["links"] for link_tag in link["tags"]]


def test_a_link_to_a_dashboard_leads_to_one_that_exists() -> None:
    uids = {board(path)["uid"] for path in PATHS}
    text = "".join(path.read_text(encoding="utf-8") for path in PATHS)
    linked = {part.split("?")[0] for part in text.split('"/d/')[1:]}

    assert linked
    assert linked <= uids
