"""Mutants are small mistakes at the places meant, and each is run against the tests that reach it."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.drift.repository import ROOT
from tests.mutation import python, tables
from tests.mutation.places import Mutant, Place, sample

MODULE = b'''"""Words."""

LIMIT = 3


def fits(count: int) -> bool:
    return count < LIMIT


def halved(count: int) -> int:
    return count // 2
'''
TEST = """
from exporter.core.words import fits, halved

def test_three_do_not_fit():
    assert fits(2) and not fits(3)

def test_nothing_is_asked_of_the_half():
    halved(4)
"""


def mutants(found: list[Place], source: bytes) -> dict[str, set[str]]:
    """What the line reads after each mutation, by kind."""
    made: dict[str, set[str]] = {}
    for place in found:
        for choice in place.choices:
            text = Mutant(place, "core", choice).source(source).decode()
            made.setdefault(place.kind, set()).add(text.splitlines()[place.line - 1].strip())
    return made


@pytest.mark.parametrize(
    ("line", "kind", "mutated"),
    [
        ("if one<(two): pass", "comparison", {"if one<=(two): pass"}),
        ("if (one) is not None: pass", "comparison", {"if (one) is None: pass"}),
        ("if one: pass", "condition", {"if (not (one)): pass"}),
        ("a = b and (c or d)", "and, or", {"a = b or (c or d)", "a = b and (c and d)"}),
        ("one = not two", "not", {"one = (two)"}),
        ("one = 'é', 2 - (three)", "arithmetic", {"one = 'é', 2 + (three)"}),
        ("def one(two=3): pass", "constant", {"def one(two=4): pass", "def one(two=(2)): pass"}),
        ("def one(): return two", "return", {"def one(): return None"}),
        ("one(2)", "dropped", {"pass"}),
        ("for one in two: continue", "continue", {"for one in two: break"}),
        ("re.sub('a{2}|b')", "regex", {"re.sub('a{1}|b')", "re.sub('a{3}|b')", "re.sub('a{2}')"}),
    ],
)  # fmt: skip
def test_a_mutant_of_python_is_one_small_mistake(line: str, kind: str, mutated: set[str]) -> None:
    source = line.encode()

    assert mutants(list(python.places("a.py", source)), source)[kind] == mutated


@pytest.mark.parametrize(
    "line",
    [
        "assert one < 2",
        "one: 'Two'",
        '"""Text."""',
        "assert_never(one)",
        "One: TypeAlias = 'Two'",
        "@one(True)\ndef two(): ...",
    ],
)
def test_what_no_run_can_show_is_not_mutated(line: str) -> None:  # fmt: skip
    assert list(python.places("a.py", line.encode())) == []


def test_a_table_is_mutated_in_its_expressions_and_facts_and_stays_a_table() -> None:
    source = b"""[[format]]
id = "one"
pattern = '(?i:ab)[0-9]{4,}'
near = ["red", "blue"]
must = true
reach = 70
check = "crc32"
example = "ab<digits:4>"
"""
    found = list(tables.places("a.toml", source))

    made = mutants(found, source)
    assert made["regex"] == {"pattern = '(?:ab)[0-9]{4,}'", *(f"pattern = '(?i:ab)[0-9]{{{n},}}'" for n in (3, 5))}
    assert made["item"] == {'near = ["red", ]', 'near = [ "blue"]'}
    assert made["flag"] == {"must = false"}
    assert made["constant"] == {"reach = 71", "reach = 69"}
    assert made["dropped"] == {""}
    for place in found:
        for choice in place.choices:
            tomllib.loads(Mutant(place, "formats", choice).source(source).decode())


def test_a_seed_names_a_sample_of_every_package() -> None:
    folders = ("exporter/core/", "otel/machines/", "redaction/", "redaction/rules/", "redaction/rules/tables/")
    there = [Place(f"{one}a", 1, at, at + 1, "constant", (b"1", b"2")) for one in folders for at in range(100)]

    first, again, other = sample(there, 60, 1), sample(there, 60, 1), sample(there, 60, 2)

    assert first == again != other
    assert len(set(first)) == 60
    assert {one.package for one in first} == {"core", "machines", "engine", "rules", "formats"}


def test_a_mutant_is_killed_by_the_test_that_reaches_it_and_the_tree_stays(tmp_path: Path) -> None:
    for name, content in {
        "exporter/core/words.py": MODULE,
        "tests/core/test_words.py": TEST.encode(),
        "pyproject.toml": b"[tool.pytest.ini_options]\naddopts = ['--import-mode=importlib']\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    command = [sys.executable, "-m", "tests.mutation", "--root", str(tmp_path), "--count", "50"]

    run = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)

    survivors = [line for line in run.stdout.splitlines() if line.startswith("survived: ")]
    assert len(survivors) == 3, run.stdout + run.stderr
    assert all("words.py:11 " in line for line in survivors)
    killed = [line for line in run.stderr.splitlines() if line.startswith("killed")]
    assert killed
    assert all("test_three_do_not_fit" in line for line in killed)
    assert (tmp_path / "exporter/core/words.py").read_bytes() == MODULE
