"""Both lock files hold names, versions and hashes, agree, and are in step with `pyproject.toml`."""

import re
from collections.abc import Iterator
from typing import Final

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.drift.repository import pyproject, text

ENTRY: Final = re.compile(r"(?P<name>[a-z0-9-]+)==(?P<version>[^ ]+)(?: ; (?P<marker>.+?))? \\")
HASH: Final = re.compile(r"    --hash=sha256:[0-9a-f]{64}(?: \\)?")


RUN: Final = "requirements.lock"
DEVELOP: Final = "requirements-dev.lock"
PACKED: Final = "deploy/packages/requirements.lock"
LOCKS: Final = (RUN, DEVELOP, PACKED)


def _entries(lock: str) -> dict[str, Requirement]:
    found = {}
    for line in text(lock).splitlines():
        if match := ENTRY.fullmatch(line):
            found[match["name"]] = Requirement(line.removesuffix("\\"))
    return found


def _declared(lock: str) -> Iterator[Requirement]:
    settings = pyproject()
    groups = [settings["project"]["dependencies"]]
    groups.append(settings["build-system"]["requires"] if lock != PACKED else [])
    if lock == PACKED:
        groups.extend(settings["project"]["optional-dependencies"].values())
    if lock == DEVELOP:
        groups.append([line for line in settings["dependency-groups"]["dev"] if isinstance(line, str)])
    for group in groups:
        yield from map(Requirement, group)


@pytest.mark.parametrize("lock", LOCKS)
def test_every_line_is_a_version_or_a_hash(lock: str) -> None:
    strange = [line for line in text(lock).splitlines() if not (ENTRY.fullmatch(line) or HASH.fullmatch(line))]

    assert strange == []


@pytest.mark.parametrize("lock", LOCKS)
def test_every_version_has_a_hash(lock: str) -> None:
    blocks = re.split(r"(?m)^(?=[a-z])", text(lock))[1:]

    assert len(blocks) == len(_entries(lock))
    assert [block for block in blocks if "--hash=sha256:" not in block] == []


@pytest.mark.parametrize(
    ("lock", "requirement"), [(lock, requirement) for lock in LOCKS for requirement in _declared(lock)], ids=str
)
def test_a_dependency_is_locked_at_a_version_that_is_allowed(lock: str, requirement: Requirement) -> None:
    locked = _entries(lock)[canonicalize_name(requirement.name)]
    (pin,) = locked.specifier

    assert requirement.specifier.contains(Version(pin.version), prereleases=True)


@pytest.mark.parametrize("lock", LOCKS)
@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
@pytest.mark.parametrize("python", ["3.11", "3.12", "3.13", "3.14"])
def test_every_dependency_is_locked_for_every_platform(lock: str, platform: str, python: str) -> None:
    place = {"sys_platform": platform, "python_version": python, "python_full_version": f"{python}.0"}
    wanted = {canonicalize_name(r.name) for r in _declared(lock) if r.marker is None or r.marker.evaluate(place)}
    locked = {name for name, entry in _entries(lock).items() if entry.marker is None or entry.marker.evaluate(place)}

    assert wanted - locked == set()


def test_what_runs_is_locked_at_the_versions_that_are_tested() -> None:
    develop = _entries(DEVELOP)

    for run in (_entries(RUN), _entries(PACKED)):
        assert {name: str(entry.specifier) for name, entry in run.items()} == {
            name: str(develop[name].specifier) for name in run
        }


def test_what_runs_brings_no_tools_of_development() -> None:
    tools = {"kingfisher-bin", "mypy", "playwright", "pytest", "ruff"}

    assert tools <= _entries(DEVELOP).keys()
    assert tools & _entries(RUN).keys() == set()
