"""Which tests call which function, and how long they take: one run of the tests, kept for each file of tests."""

import ast
import builtins
import hashlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import sys
import time
from collections.abc import Collection, Generator, Iterator
from dataclasses import dataclass, field
from importlib.machinery import ModuleSpec
from pathlib import Path, PurePosixPath
from types import CodeType
from typing import Any, Final

import pytest

from tests.mutation.places import Place, package_of

FOLDERS: Final = ("tests/core", "tests/otel", "tests/redaction")
"""The tests of units that mirror what is mutated."""
LEFT_OUT: Final = frozenset({"slow", "alone", "real", "bench"})
SECONDS_MAX: Final = 10.0
"""A test that takes longer, while its calls are noted, is not run against mutants."""
FILES_MAX: Final = 3
_NOTE: Final = "__reached__"
SPEED: Final = frozenset({"test_hostile.py", "test_heldout.py"})
"""Tests of many megabytes, of which the time and the share of misses are judged."""


@dataclass(slots=True)
class Reach:
    """By test: its seconds, and the functions that it calls, as `path:name`."""

    seconds: dict[str, float] = field(default_factory=dict)
    calls: dict[str, set[str]] = field(default_factory=dict)

    def tests_of(self, place: Place, users: Collection[str] = ()) -> tuple[list[str], list[str]]:
        """The tests that mirror the place, and the others that reach it; the fastest first.

        What is in no function is reached through `users`, the functions that read it, if these are known.
        """
        mirror = mirrors(place.path)
        wanted = {f"{place.path}:{name}" for name in users or (place.function,)}
        first, then = [], []
        for test in self.seconds:
            file = test.partition("::")[0]
            if any(file == one or file.startswith(one + "/") for one in mirror):
                first.append(test)
            elif self._reaches(test, place, wanted):
                then.append(test)
        if place.function is None and not users:
            then = self._of_most_use(place, then) if not (first and place.path.endswith(".toml")) else []
        near = str(PurePosixPath(mirror[0]).parent)
        return (
            sorted(first, key=lambda test: self.seconds[test]),
            sorted(then, key=lambda test: (not test.startswith(near), self.seconds[test])),
        )

    def while_imported(self) -> set[str]:
        """What may be called while a file of tests is imported: that which each of its tests calls."""
        by_file: dict[str, set[str]] = {}
        for test, calls in self.calls.items():
            file = test.partition("::")[0]
            by_file[file] = by_file.get(file, calls) & calls
        return set().union(*by_file.values())

    def _of_most_use(self, place: Place, tests: list[str]) -> list[str]:
        """Those of the few files that call most of the module: to import a file takes longer than most tests."""
        called: dict[str, set[str]] = {}
        for test in tests:
            here = {call for call in self.calls[test] if call.startswith(place.path + ":")}
            called.setdefault(test.partition("::")[0], set()).update(here)
        files = sorted(called, key=lambda file: -len(called[file]))[:FILES_MAX]
        return [test for test in tests if test.partition("::")[0] in files]

    def _reaches(self, test: str, place: Place, wanted: Collection[str]) -> bool:
        if f"{place.path}:None" not in wanted:
            return not self.calls[test].isdisjoint(wanted)
        if place.path.endswith(".toml"):
            return test.startswith("tests/otel" if place.path.startswith("otel") else "tests/redaction")
        return any(call.startswith(place.path + ":") for call in self.calls[test])


def mirrors(path: str) -> list[str]:
    """The files or folders of tests that mirror a module."""
    below = PurePosixPath(path.removeprefix("exporter/"))
    if path.startswith("redaction/rules/tables/"):
        return ["tests/redaction/rules/test_formats.py"]
    if path.startswith("redaction/rules/context/"):
        return ["tests/redaction/rules/context"]
    if path.startswith("redaction/heuristics/"):
        return ["tests/redaction/heuristics"]
    return [str(PurePosixPath("tests") / below.with_name(f"test_{below.stem}.py"))]


class Recorder:
    """A plugin of pytest that notes what each test calls; what collecting its file calls counts for all of them."""

    def __init__(self) -> None:
        self.called: set[str] = set()
        self.reach = Reach()
        self.left_out: set[str] = set()

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if not any(item.get_closest_marker(name) for name in LEFT_OUT)]
        self.collecting = frozenset(self.called)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        self.called.clear()
        begun = time.process_time()
        try:
            return (yield)
        finally:
            self.reach.seconds[item.nodeid] = time.process_time() - begun
            self.reach.calls[item.nodeid] = self.called | self.collecting

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed or report.skipped:
            self.left_out.add(report.nodeid)


def instrumented(path: str, source: bytes) -> bytes:
    """The module, each function of which begins with a note that it was called."""
    lines = source.splitlines(keepends=True)
    for name, function in sorted(functions(ast.parse(source)), key=lambda pair: -pair[1].lineno):
        body = [one for one in function.body if not (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))]
        if not body or body[0].lineno == function.lineno:
            continue
        decorators = getattr(body[0], "decorator_list", [])
        at = min(one.lineno for one in (body[0], *decorators)) - 1
        lines.insert(at, b" " * body[0].col_offset + f"{_NOTE}.add({f'{path}:{name}'!r})\n".encode())
    return b"".join(lines)


def functions(
    node: ast.AST, names: tuple[str, ...] = ()
) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Every function below, by its name with those of what it is in, as `Place.function` names it."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            if not isinstance(child, ast.ClassDef):
                yield ".".join((*names, child.name)), child
            yield from functions(child, (*names, child.name))
        else:
            yield from functions(child, names)


def record(root: Path, file: str) -> dict[str, Any]:
    """Run this file of tests in this process, and return its tests; to be called in a process of its own."""
    recorder = Recorder()
    setattr(builtins, _NOTE, recorder.called)
    sys.dont_write_bytecode = True
    sys.meta_path.insert(0, _Importer(root))
    status = pytest.main(["-p", "no:cacheprovider", "-p", "no:xdist", "-o", "timeout=0", file], plugins=[recorder])
    if status not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED):
        raise RuntimeError(f"pytest ended with {status!r}")
    return {
        test: [round(seconds, 4), sorted(recorder.reach.calls[test])]
        for test, seconds in recorder.reach.seconds.items()
        if test not in recorder.left_out and seconds <= SECONDS_MAX
    }


class _Importer(importlib.abc.MetaPathFinder):
    """Loads the modules that are mutated with their notes."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def find_spec(self, name: str, _path: object, _target: object = None) -> ModuleSpec | None:
        file = self.root / (name.replace(".", "/") + ".py")
        if package_of(file.relative_to(self.root).as_posix()) is None or not file.is_file():
            return None
        return importlib.util.spec_from_file_location(name, file, loader=_Noted(name, str(file), self.root))


class _Noted(importlib.machinery.SourceFileLoader):
    def __init__(self, name: str, file: str, root: Path) -> None:
        super().__init__(name, file)
        self.root = root

    def get_code(self, fullname: str) -> CodeType:
        file = Path(self.path)
        source = instrumented(file.relative_to(self.root).as_posix(), file.read_bytes())
        return compile(source, self.path, "exec", dont_inherit=True)


def files_of_tests(root: Path) -> list[str]:
    found = (path for folder in FOLDERS for path in sorted((root / folder).rglob("test_*.py")))
    return [path.relative_to(root).as_posix() for path in found if path.name not in SPEED]


def digest(root: Path, file: str) -> str:
    """Of a file of tests; a changed product changes which tests reach a line, not that they are its tests."""
    return hashlib.sha256((root / file).read_bytes()).hexdigest()


def read(path: Path) -> dict[str, Any]:
    try:
        kept: dict[str, Any] = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return kept
