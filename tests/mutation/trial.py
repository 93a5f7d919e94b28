"""A warm process, and a child of it for each mutant, in a copy of the tree.

The process has imported all that the tests import, but for the program and the tests themselves; a child imports
those from the copy, so that a mutant costs a fork, the import of our own code and the tests until the first that fails.
"""

import contextlib
import gc
import hashlib
import importlib
import json
import math
import os
import re
import resource
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, NoReturn, TypeAlias

import pytest

from tests.mutation import reach, tables
from tests.mutation.patched import OURS, Patcher, users_of
from tests.mutation.places import Mutant
from tests.mutation.reach import Reach
from tests.rows import ONLY

_COPIED: Final = (*OURS, "docs", "pyproject.toml", "README.md")
_MEMORY_MAX: Final = 4 << 30
_IDLE_SECONDS_MAX: Final = 30.0  # limits are of processor time, so that a busy machine does not decide
_RECORD_SECONDS_MAX: Final = 600
BUDGET_SECONDS: Final = 4.0
"""As many tests as took this long without a mutant, the mirroring and the fast ones first."""
_ROW: Final = re.compile(r"The row: '([^'\n]+)'")
_AGAIN: Final = "again"
_ENDED: Final = "the process ended"
_Mutants: TypeAlias = list[tuple[int, Mutant]]
_Say: TypeAlias = Callable[..., object]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a mutant: `killed` by a test, `timeout`, or `survived`."""

    mutant: Mutant
    verdict: str
    by: str
    seconds: float
    tests: int


class Trials:
    """The copy of the tree, the map of what tests reach, and one mutant after the other."""

    def __init__(self, root: Path, kept: Path) -> None:
        self.place = Path(tempfile.mkdtemp(prefix="mutants-")).resolve()
        self.root, self.copy = root, self.place / "tree"
        self.copy.mkdir()
        captures = Path(os.environ.get("EXPORTER_SHARED", root.parent / "shared"))
        if captures.is_dir():  # what some tests replay stands beside the tree
            (self.place / "shared").symlink_to(captures)
        for name in _COPIED:
            if not (root / name).exists():
                continue
            if (root / name).is_dir():
                ignored = shutil.ignore_patterns("__pycache__", "test_mutation.py")
                shutil.copytree(root / name, self.copy / name, ignore=ignored)
            else:
                shutil.copy2(root / name, self.copy / name)
        self.cache = self.copy / ".rules"
        self.cache.mkdir(mode=0o700)
        os.environ["CI"] = "1"  # hypothesis draws the same for everybody
        self._warm()
        self.reach = self._reach(kept)

    def close(self) -> None:
        shutil.rmtree(self.place, ignore_errors=True)

    def outcomes(self, mutants: list[Mutant], workers: int) -> Iterator[Outcome]:
        """What becomes of each, as it becomes known: first of those that can be patched, then of the others."""
        decided = set[Mutant]()
        patchable = [mutant for mutant in mutants if mutant.place.path.endswith(".py")]
        for one in self._in_workers(self._patch_each, patchable, workers):
            if one.verdict != "again":
                decided.add(one.mutant)
                yield one
        yield from self._in_workers(self._write_each, [mutant for mutant in mutants if mutant not in decided], workers)

    def _in_workers(
        self, work: Callable[[_Mutants, _Say], None], mutants: list[Mutant], workers: int
    ) -> Iterator[Outcome]:
        reading, writing = os.pipe()
        processes = []
        numbered = list(enumerate(mutants))
        for first in range(workers):
            pid = os.fork()
            if pid == 0:
                os.close(reading)
                self._work(partial(work, numbered[first::workers]), writing)
            processes.append(pid)
        os.close(writing)
        with os.fdopen(reading) as lines:
            for line in lines:
                number, *rest = json.loads(line)
                yield Outcome(mutants[number], *rest)
        for pid in processes:
            os.waitpid(pid, 0)

    def _work(self, work: Callable[[_Say], None], writing: int) -> NoReturn:
        """A worker, forked from the warm process, with a copy of the tree of its own; it never returns."""
        try:
            place = Path(tempfile.mkdtemp(prefix="worker-", dir=self.place))
            self.copy = shutil.copytree(self.place, place, symlinks=True, ignore=_workers, dirs_exist_ok=True) / "tree"
            work(lambda *said: os.write(writing, json.dumps(said).encode() + b"\n"))
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)

    def _write_each(self, mutants: _Mutants, say: _Say) -> None:
        formats = [(number, mutant) for number, mutant in mutants if self._row(mutant)]
        self._mutate_rows(formats, say)
        for number, mutant in mutants:
            if (number, mutant) not in formats:
                one = self.run(mutant)
                say(number, one.verdict, one.by, one.seconds, one.tests)

    def _row(self, mutant: Mutant) -> str:
        return tables.row_of(mutant.place, (self.copy / mutant.place.path).read_bytes())

    def _mutate_rows(self, mutants: _Mutants, say: _Say) -> None:
        """Mutate many rows of tables at once, where each is judged by what its own tests say of it."""
        begun = time.monotonic()
        by_row = {self._row(mutant): (number, mutant) for number, mutant in mutants}
        together = list(by_row.values())
        originals = {path: (self.copy / path).read_bytes() for path in {one.place.path for _, one in together}}
        tests = (
            sorted(self.reach.tests_of(together[0][1].place)[0], key=lambda test: self.reach.seconds[test])
            if together
            else []
        )
        try:
            for _, mutant in sorted(together, key=lambda pair: -pair[1].place.start):
                file = self.copy / mutant.place.path
                file.write_bytes(mutant.source(file.read_bytes()))
            limit = 30 + sum(self.reach.seconds[test] for test in tests)
            answer = self._child(partial(_failing_rows, tests, list(by_row)), seconds=limit) if together else {}
        finally:
            for path, original in originals.items():
                (self.copy / path).write_bytes(original)
        if isinstance(answer, dict):
            for row, (number, _) in by_row.items():
                by = answer.get(row, "")
                say(number, "killed" if by else "survived", by, time.monotonic() - begun, len(tests))
        elif len(together) > 1:
            self._mutate_rows(together[: len(together) // 2], say)
            self._mutate_rows(together[len(together) // 2 :], say)
        else:
            for number, mutant in together:
                one = self.run(mutant)
                say(number, one.verdict, one.by, one.seconds, one.tests)
        if others := [pair for pair in mutants if pair not in together]:
            self._mutate_rows(others, say)

    def _patch_each(self, mutants: _Mutants, say: _Say) -> None:
        """Collect all tests once, and fork a process for each mutant in which functions get its code."""
        rules = tempfile.mkdtemp(prefix="rules-", dir=self.place)
        shutil.copytree(self.cache, rules, dirs_exist_ok=True)
        _enter(self.copy, rules)
        sys.dont_write_bytecode = True
        imported = self.reach.while_imported()

        def serve(items: dict[str, pytest.Item], failed: list[str]) -> None:
            patcher = Patcher()
            gc.freeze()
            for number, mutant in mutants:
                begun, place = time.monotonic(), mutant.place
                readers = (
                    users_of((self.copy / place.path).read_bytes(), place)
                    if place.function is None
                    else {place.function}
                )
                mirroring, others = self.reach.tests_of(place, readers)
                chosen = self._affordable([*mirroring, *others])
                tests = [test for test in (*mirroring, *others) if test in chosen and test in items]
                attempt = partial(self._attempt, patcher, mutant, [items[test] for test in tests], failed)
                answer = _forked(attempt) if readers else _AGAIN
                verdict, by = ("timeout", "") if answer is None else ("killed", answer) if answer else ("survived", "")
                unproven = verdict == "survived" and any(f"{place.path}:{name}" in imported for name in readers)
                if unproven or answer in (_AGAIN, _ENDED) or len(tests) < len(chosen):
                    verdict = "again"
                say(number, verdict, by, time.monotonic() - begun, len(chosen))
                if _contents(Path(rules)) != _contents(self.cache):
                    shutil.rmtree(rules)
                    shutil.copytree(self.cache, rules)

        pytest.main(_arguments([one for one in reach.FOLDERS if Path(one).is_dir()]), plugins=[_Served(serve)])

    def _attempt(self, patcher: Patcher, mutant: Mutant, items: list[pytest.Item], failed: list[str]) -> str:
        if not patcher.patch(self.copy / mutant.place.path, mutant):
            return _AGAIN
        for item, following in zip(items, [*items[1:], None], strict=True):
            signal.setitimer(signal.ITIMER_PROF, 5 + 4 * self.reach.seconds[item.nodeid])
            item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
            if failed:
                return failed[0]
        return ""

    def unmutated(self, killed: list[Outcome]) -> list[Outcome]:
        """Those of the killed whose test fails, or does not end, without a mutant as well: they say nothing."""
        tests = {one.by for one in killed} & self.reach.seconds.keys()
        order = sorted(tests, key=lambda test: self.reach.seconds[test])
        limit = 60 + 4 * sum(self.reach.seconds[test] for test in order)
        answer = self._child(partial(_failures, order), seconds=limit) if order else []
        failing = set(answer if isinstance(answer, list) else order)
        return [one for one in killed if (one.by in failing if one.by in tests else self._ends_anyhow(one.mutant))]

    def _ends_anyhow(self, mutant: Mutant) -> bool:
        original = (self.root / mutant.place.path).read_bytes()[mutant.place.start : mutant.place.end]
        return self.run(replace(mutant, text=original)).verdict != "survived"

    def _warm(self) -> None:
        """Compile the rules and all bytecode, and import what the tests import from elsewhere."""
        loaded = self._child(_collected, seconds=600)
        for name in loaded or []:
            with contextlib.suppress(Exception):
                importlib.import_module(name)

    def _reach(self, path: Path) -> Reach:
        kept = reach.read(path)
        files = {file: reach.digest(self.root, file) for file in reach.files_of_tests(self.root)}
        missing = [file for file, digest in files.items() if kept.get(file, [None])[0] != digest]
        for number, file in enumerate(missing):
            print(f"Measuring what {file} reaches: {number + 1} of {len(missing)}.", file=sys.stderr, flush=True)
            measured = self._child(partial(reach.record, self.copy, file), seconds=_RECORD_SECONDS_MAX)
            if not isinstance(measured, dict):  # killed, or too slow: without its tests mutants would seem to survive
                raise TypeError(f"{file} was not measured: {measured or 'it did not end in time'}")
            kept[file] = [files[file], measured]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps({file: kept[file] for file in files if file in kept}))
        found = Reach()
        for _, tests in (kept[file] for file in files if file in kept):
            for test, (seconds, calls) in tests.items():
                found.seconds[test], found.calls[test] = seconds, set(calls)
        return found

    def judged_by(self, mutant: Mutant, by: str) -> str:
        """Names what an outcome rests on: the mutated file, the test that failed or the files of those that passed."""
        mirroring, others = self.reach.tests_of(mutant.place)
        tests = [by] if by in self.reach.seconds else sorted(self._affordable([*mirroring, *others]))
        judges = [by] if tests == [by] else sorted({test.partition("::")[0] for test in tests})
        contents = [(self.copy / file).read_bytes() for file in (mutant.place.path, *judges) if "::" not in file]
        named = repr((judges, None if tests == [by] else BUDGET_SECONDS)).encode()
        return hashlib.sha256(b"".join(hashlib.sha256(one).digest() for one in (named, *contents))).hexdigest()

    def run(self, mutant: Mutant) -> Outcome:
        begun = time.monotonic()
        file = self.copy / mutant.place.path
        original = file.read_bytes()
        mirroring, others = self.reach.tests_of(mutant.place)
        row = self._row(mutant)
        chosen = set(mirroring) if row else self._affordable([*mirroring, *others])
        stages = [[test for test in mirroring if test in chosen], [test for test in others if test in chosen]]
        verdict, by = "survived", ""
        try:
            file.write_bytes(mutant.source(original))
            os.utime(file, (1, 1))  # whatever was compiled from the original is no longer of this file
            for stage in stages:
                if stage and verdict == "survived":
                    limit = 5 + 4 * sum(self.reach.seconds[test] for test in stage)
                    verdict, by = self._verdict(stage, limit, row)
        finally:
            file.write_bytes(original)
        return Outcome(mutant, verdict, by, time.monotonic() - begun, len(chosen))

    def _affordable(self, tests: list[str]) -> set[str]:
        spent, chosen = 0.0, set[str]()
        for test in tests:
            spent += self.reach.seconds[test]
            if spent > BUDGET_SECONDS and chosen:
                break
            chosen.add(test)
        return chosen

    def _verdict(self, tests: list[str], limit: float, row: str) -> tuple[str, str]:
        answer = self._child(partial(_first_failure, tests, row), seconds=limit)
        if answer is None:
            return "timeout", f"{limit:.0f} s"
        return ("killed", str(answer)) if answer else ("survived", "")

    def _child(self, work: Callable[[], Any], seconds: float) -> Any:
        """What the work returns in a child in the copy; the text of what ended it otherwise; None after the limit."""
        rules = tempfile.mkdtemp(prefix="rules-", dir=self.place)
        shutil.rmtree(rules)
        shutil.copytree(self.cache, rules)
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reading)
            _act(work, self.copy, rules, writing, seconds)
        os.close(writing)
        try:
            answer = _answer(reading, pid)
        finally:
            os.close(reading)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
            _, status = os.waitpid(pid, 0)
            if answer is not None and not any(self.cache.iterdir()):
                shutil.copytree(rules, self.cache, dirs_exist_ok=True)
            shutil.rmtree(rules, ignore_errors=True)
        return None if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU else answer


def _contents(folder: Path) -> set[tuple[str, int]]:
    return {(str(one.relative_to(folder)), one.stat().st_size) for one in folder.rglob("*") if one.is_file()}


def _workers(_: str, names: list[str]) -> list[str]:
    return [name for name in names if name.startswith("worker-")]


def _answer(reading: int, pid: int) -> Any:
    """What the child wrote; None when it waits for something that does not come. Its limit is of processor time."""
    used, received = -1.0, b""
    while True:
        if not select.select([reading], [], [], _IDLE_SECONDS_MAX)[0]:
            before, used = used, _used(pid)
            if used == before:
                return None
            continue
        part = os.read(reading, 1 << 20)
        if not part:
            return json.loads(received) if received else _ENDED
        received += part


def _used(pid: int) -> float:
    """The processor time that a process and its children took."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(float, fields[11:15]))


def _act(work: Callable[[], Any], copy: Path, rules: str, writing: int, seconds: float) -> NoReturn:
    """The child: in a group of its own, without output, with limits of memory and processor time; it never returns."""
    try:
        os.setpgid(0, 0)
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_MAX, _MEMORY_MAX))
        resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(seconds), math.ceil(seconds) + 1))
        _enter(copy, rules)
        with os.fdopen(writing, "w") as answer:
            json.dump(work(), answer)
    except BaseException:
        os._exit(1)
    os._exit(0)


def _enter(copy: Path, rules: str) -> None:
    """Forget our own modules and import them from the copy from now on; say nothing."""
    os.environ["TESTS_CACHE_HOME"] = rules
    silent = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(silent, descriptor)
    os.chdir(copy)
    for name in [name for name in sys.modules if name.partition(".")[0] in OURS]:
        del sys.modules[name]
    others = [path for path in sys.path if path and not any(Path(path, name).is_dir() for name in OURS[:3])]
    sys.path[:] = [str(copy), *others]
    sys.meta_path[:] = [finder for finder in sys.meta_path if "editable" not in repr(finder).lower()]
    importlib.invalidate_caches()


def _forked(attempt: Callable[[], str]) -> Any:
    """What the attempt returns in a child; the text of what ended it otherwise; None after a limit."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setpgid(0, 0)
            resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_MAX, _MEMORY_MAX))
            os.write(writing, json.dumps(attempt()).encode())
        finally:
            os._exit(0)
    os.close(writing)
    try:
        answer = _answer(reading, pid)
    finally:
        os.close(reading)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
    return None if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGPROF else answer


def _arguments(files: Iterator[str] | list[str]) -> list[str]:
    plugins = ("cacheprovider", "xdist")
    return [*(f"-pno:{name}" for name in plugins), "-o", "timeout=0", *files]


class _Selected:
    """A plugin of pytest: these tests, in this order, and the name of the first that fails."""

    def __init__(self, tests: list[str]) -> None:
        self.order = {test: index for index, test in enumerate(tests)}
        self.failed: list[str] = []
        self.notes: dict[str, str] = {}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = sorted(
            (item for item in items if item.nodeid in self.order), key=lambda item: self.order[item.nodeid]
        )

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.append(report.nodeid)

    def pytest_exception_interact(self, node: pytest.Item | pytest.Collector, call: pytest.CallInfo[Any]) -> None:
        error = call.excinfo.value if call.excinfo is not None else None
        if isinstance(error, BaseExceptionGroup):  # its text would name fifteen at most
            notes = [note for one in error.exceptions for note in getattr(one, "__notes__", ())]
            self.notes[node.nodeid] = "\n".join(notes)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.failed.append(report.nodeid or "collecting")


class _Served:
    """A plugin of pytest: all tests collected, handed over instead of run."""

    def __init__(self, serve: Callable[[dict[str, pytest.Item], list[str]], None]) -> None:
        self.serve = serve
        self.failed: list[str] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self.serve({item.nodeid: item for item in session.items}, self.failed)
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.append(report.nodeid)


def _failures(tests: list[str], *options: str) -> list[str]:
    sys.dont_write_bytecode = True
    selected = _Selected(tests)
    files = sorted({test.partition("::")[0] for test in tests})
    status = pytest.main([*options, *_arguments(files)], plugins=[selected])
    passed = status in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
    return selected.failed if passed or selected.failed else ["pytest"]


def _failing_rows(tests: list[str], rows: list[str]) -> dict[str, str] | str:
    """By row the test that names it as failing; a text where a test fails without naming one."""
    os.environ[ONLY] = ",".join(rows)
    sys.dont_write_bytecode = True
    selected = _Selected(tests)
    status = pytest.main(_arguments(sorted({test.partition("::")[0] for test in tests})), plugins=[selected])
    found: dict[str, str] = {}
    for test in selected.failed:
        named = [row for row in _ROW.findall(selected.notes.get(test, "")) if row in rows]
        if not named:
            return test
        for row in named:
            found.setdefault(row, test)
    return found if status in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED) else "pytest"


def _first_failure(tests: list[str], row: str) -> str:
    if row:
        os.environ[ONLY] = row
    return next(iter(_failures(tests, "-x")), "")


def _collected() -> list[str]:
    """Import what the tests import; return the names of the modules that are not ours."""
    pytest.main([*_arguments([one for one in reach.FOLDERS if Path(one).is_dir()]), "--collect-only"])
    return sorted(name for name in sys.modules if name.partition(".")[0] not in (*OURS, "__main__"))
