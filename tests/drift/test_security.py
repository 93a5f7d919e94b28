"""Every claim of docs/security.md names a test that exists, and its table of routes is the one that is tested."""

import ast
import re
from collections.abc import Iterator
from typing import Final

from tests.drift.repository import ROOT, text
from tests.missioncontrol.http.test_access import TABLE

DOCUMENT: Final = "docs/security.md"
TEST: Final = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def _tables() -> Iterator[tuple[list[str], list[str]]]:
    """Yields every row of every table, with the table's headings."""
    headings: list[str] = []
    for line in text(DOCUMENT).splitlines():
        if not line.startswith("|"):
            headings = []
        elif not headings:
            headings = _cells(line)
        elif not line.startswith("|---"):
            yield headings, _cells(line)


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def _tests(file: str) -> set[str]:
    found = (
        node for node in ast.walk(ast.parse(text(file))) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    return {node.name for node in found if node.name.startswith("test_")}


def test_every_test_that_is_named_exists() -> None:
    named = TEST.findall(text(DOCUMENT))

    assert len(named) >= 60
    assert [f"{file}::{name}" for file, name in named if not (ROOT / file).is_file() or name not in _tests(file)] == []


def test_every_claim_names_a_test() -> None:
    claims = [row for headings, row in _tables() if "test" in headings[-1]]

    assert len(claims) >= 35
    assert [row for row in claims if not TEST.search(row[-1])] == []


def test_the_table_of_routes_is_the_one_that_is_tested() -> None:
    """`test_access.py` compares that one with the routes that are served, and with their answers."""
    words = {200: "yes", 204: "yes", 303: "yes", 501: "yes", 403: "no"}
    tested = {
        (request.partition("?")[0], *(words.get(status, str(status)) for status in statuses))
        for request, _, *statuses in TABLE
    }

    told = [
        (route, *answers)
        for headings, (routes, *answers) in _tables()
        if headings[0] == "routes"
        for route in re.findall(r"`([^`]+)`", routes)
    ]

    assert len(told) == len(set(told))
    assert set(told) == tested
    assert all(f"`{path}`" in text(DOCUMENT) for path in ("GET /healthz", "/enter"))
