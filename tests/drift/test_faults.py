"""The table of faults: complete, every test collected, every fault injected at a real edge, the document up to date."""

import ast
import re
import subprocess
import sys
from functools import cache
from typing import Final

import pytest

from tests.drift.repository import ROOT, text
from tests.faults.table import TABLE, Row

EDGES: Final = {
    "files": r"\.write\(|append|truncate|rename|replace|unlink|symlink|mkfifo|write_(bytes|text)|session\(|chmod",
    "socket": r"Reply|Answer|: Peer|\.resets|create_connection|client|serve|post\(",
    "signal": r"SIGTERM|SIGSTOP|SIGKILL|\.kill\(|\.stop\(|Popen|killed_after|start\(second",
    "disk": r"small_disk|SmallDisk|tmpfs",
    "limit": r"RLIMIT|setrlimit|_few_descriptors|inotify",
    "clock": r"speed_up|WallClock",
    "namespace": r"Cage|unshare",
}
"""What the tests of a row must do, by the edge at which its fault comes in."""
STAND_INS: Final = re.compile(r"monkeypatch|fast_clock|unittest\.mock|_fail_commits|MagicMock")
"""What would put the fault into our own code instead."""


@cache
def _functions(path: str) -> dict[str, str]:
    """The functions and classes of a test module, and those of its package's conftest, with their source."""
    found: dict[str, str] = {}
    for file in (ROOT / path, (ROOT / path).with_name("conftest.py")):
        if file.is_file():
            source = file.read_text(encoding="utf-8")
            for node in ast.parse(source).body:
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                    start = min([node.lineno, *(one.lineno for one in node.decorator_list)])
                    found.setdefault(node.name, "\n".join(source.splitlines()[start - 1 : node.end_lineno]))
    return found


def _source(test: str) -> str:
    """A test with everything of its module and fixtures that it names, directly or not."""
    path, _, name = test.partition("[")[0].partition("::")
    functions = _functions(path)
    seen, open_names = {name: functions[name]}, [name]
    while open_names:
        words = set(re.findall(r"\w+", seen[open_names.pop()]))
        for one in words & functions.keys() - seen.keys() - {"anyio_backend"}:
            seen[one] = functions[one]
            open_names.append(one)
    return "\n".join(seen.values())


def test_numbers_are_complete() -> None:
    assert [row.number for row in TABLE] == list(range(1, len(TABLE) + 1))
    assert len(TABLE) >= 53
    assert all(row.tests and row.fault and row.expected for row in TABLE)


def test_every_test_is_collected() -> None:
    named = sorted({test for row in TABLE for test in row.tests})
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *named]

    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert listed.returncode == 0, listed.stdout[-2000:] + listed.stderr[-2000:]  # 4 when one of them is not there


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
def test_the_fault_comes_in_at_a_real_edge(row: Row) -> None:
    sources = {test: _source(test) for test in row.tests}

    assert not [test for test, source in sources.items() if STAND_INS.search(source)]
    assert any(re.search(EDGES[row.edge], source) for source in sources.values())


def test_the_document_has_every_row() -> None:
    rows = dict(re.findall(r"(?m)^\| (F\d+) \| ([^|]+ \| [^|]+) \| ", text("docs/faults.md").partition("## Beside")[0]))

    assert rows == {row.name: f"{row.fault} | {row.expected}" for row in TABLE}, "make faults ARGS=--write"
