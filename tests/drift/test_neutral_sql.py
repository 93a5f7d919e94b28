"""SQL outside of the engines in `missioncontrol/store` and of the FTS5 index runs on every engine behind the port."""

import ast
import re
from collections.abc import Iterator
from typing import Final

import pytest

from tests.drift.repository import ROOT

RECEIVER: Final = ROOT / "exporter" / "missioncontrol"
OF_THE_ENGINE: Final = (
    RECEIVER / "store" / "sqlite",
    RECEIVER / "store" / "postgresql",
    RECEIVER / "search" / "fts5.py",
    RECEIVER / "search" / "tenant_index.py",
)
STATEMENT: Final = re.compile(r"\s*(SELECT|INSERT INTO|UPDATE|DELETE FROM)\b")
OF_ONE_ENGINE: Final = {
    "a conflict that no other engine writes so": r"\bINSERT OR\b|\bREPLACE INTO\b|\bUPDATE OR\b|ON CONFLICT DO UPDATE",
    "a comparison that no other engine has": r"\bGLOB\b|\bIS (NOT )?\?",
    "a number as a condition": r"\b(WHERE|AND|OR) [01]\b(?! ?[=<>])",
    "a function of SQLite": r"\b(instr|hex|total|json_extract|ifnull|randomblob|zeroblob|printf|group_concat)\(",
    "several arguments for max or min": r"\b(max|min)\((?:[^()]|\([^()]*\))*,",
    "a numbered parameter": r"\?[0-9]",
    "a subquery in FROM without a name": r"\b(FROM|JOIN) \((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)(?! (AS )?[a-z])",
    "a list that may be empty": r"\bIN \(\)",
    "no limit written as one": r"\bLIMIT -1\b",
    "a row number that is not allocated": r"\bmax\(n\) ?\+|\+ ?max\(n\)|\browid\b",
    "a statement of SQLite": r"\bPRAGMA\b|\bsqlite_master\b|\bVACUUM\b|\bBEGIN\b|\bCOMMIT\b|\bROLLBACK\b",
}


def strings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield every string but docstrings, with its line; what is put into it stands as `{}`."""
    passed = {
        id(statement.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        for statement in node.body
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            passed |= {id(part) for part in node.values}
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
            yield node.lineno, text
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in passed:
            yield node.lineno, node.value


def refusals(text: str) -> list[str]:
    return [meaning for meaning, pattern in OF_ONE_ENGINE.items() if re.search(pattern, text)]


def receiver_strings() -> Iterator[tuple[str, str]]:
    for path in sorted(RECEIVER.rglob("*.py")):
        if not any(path.is_relative_to(one) for one in OF_THE_ENGINE):
            for line, text in strings(ast.parse(path.read_text(encoding="utf-8"))):
                yield f"{path.relative_to(ROOT)}:{line}", text


def test_ordinary_sql_is_neutral() -> None:
    statements = [text for _, text in receiver_strings() if STATEMENT.match(text)]
    refused = [f"{place}: {', '.join(why)}" for place, text in receiver_strings() if (why := refusals(text))]

    assert refused == []
    assert len(statements) > 70, "the statements are not found any more"


@pytest.mark.parametrize(
    "text",
    [
        "INSERT OR IGNORE INTO orphans (session, key) VALUES (?, ?)",
        "INSERT OR REPLACE INTO sums VALUES (?, ?, ?)",
        "INSERT INTO x VALUES (?) ON CONFLICT DO UPDATE SET count = count + 1",
        "type GLOB 'subagent.*'",
        "SELECT 1 FROM x WHERE a IS ?",
        "SELECT n FROM sessions WHERE 1",
        "SELECT n FROM sessions WHERE session = ? AND 1 ORDER BY n",
        "instr(haystack, ?) > 0",
        "SELECT id, hex(sha256) FROM events",
        "SELECT json_extract(report, '$.title') FROM sessions",
        "SELECT max(coalesce(a, 0), b) FROM x",
        "cast(min(total(count), 5.0) AS INTEGER)",
        "DELETE FROM x WHERE a = ?1",
        "SELECT count(*) FROM (SELECT 1 FROM sessions LIMIT 1)",
        "SELECT * FROM (SELECT max(n) FROM x) WHERE a = ?",
        "agent_id IN ()",
        "SELECT n FROM x LIMIT -1",
        "SELECT max(n) + 1 FROM events",
        "SELECT 1 + max(n) FROM events",
        "PRAGMA page_count",
        "BEGIN IMMEDIATE",
    ],
)
def test_what_only_one_engine_understands_is_refused(text: str) -> None:
    assert refusals(text)


@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO orphans (session, key) VALUES (?, ?) ON CONFLICT DO NOTHING",
        "INSERT INTO x VALUES (?) ON CONFLICT (n) DO UPDATE SET count = x.count + 1",
        "SELECT max(place), coalesce(max(n), 0) FROM events WHERE 1 = 1 AND hidden = 0",
        "SELECT a FROM (SELECT max(n) AS a FROM x) AS newest WHERE a = ?",
        "SELECT n FROM x WHERE a IS NULL AND b IN (?, ?) LIMIT ?",
    ],
)
def test_what_every_engine_understands_is_not_refused(text: str) -> None:
    assert refusals(text) == []


def test_docstrings_are_no_sql_and_parts_of_a_statement_are() -> None:
    tree = ast.parse('"""INSERT OR IGNORE"""\nx = f"SELECT {y} FROM z" " WHERE 1"\ndef f():\n    """GLOB"""\n')

    assert [text for _, text in strings(tree)] == ["SELECT {} FROM z WHERE 1"]
