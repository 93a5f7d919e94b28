"""`requirements.lock` holds names, versions and hashes, and is in step with `pyproject.toml`."""

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


def _entries() -> dict[str, Requirement]:
    found = {}
    for line in text("requirements.lock").splitlines():
        if match := ENTRY.fullmatch(line):
            found[match["name"]] = Requirement(line.removesuffix("\\"))
    return found


def _declared() -> Iterator[Requirement]:
    settings = pyproject()
    for group in (
        settings["project"]["dependencies"],
        settings["dependency-groups"]["dev"],
        settings["build-system"]["requires"],
    ):
        yield from map(Requirement, group)


def test_every_line_is_a_version_or_a_hash() -> None:
    strange = [
        line for line in text("requirements.lock").splitlines() if not (ENTRY.fullmatch(line) or HASH.fullmatch(line))
    ]

    assert strange == []


def test_every_version_has_a_hash() -> None:
    blocks = re.split(r"(?m)^(?=[a-z])", text("requirements.lock"))[1:]

    assert len(blocks) == len(_entries())
    assert [block for block in blocks if "--hash=sha256:" not in block] == []


@pytest.mark.parametrize("requirement", list(_declared()), ids=str)
def test_a_dependency_is_locked_at_a_version_that_is_allowed(requirement: Requirement) -> None:
    locked = _entries()[canonicalize_name(requirement.name)]
    (pin,) = locked.specifier

    assert requirement.specifier.contains(Version(pin.version), prereleases=True)


@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
@pytest.mark.parametrize("python", ["3.11", "3.12", "3.13", "3.14"])
def test_every_dependency_is_locked_for_every_platform(platform: str, python: str) -> None:
    place = {"sys_platform": platform, "python_version": python, "python_full_version": f"{python}.0"}
    wanted = {canonicalize_name(r.name) for r in _declared() if r.marker is None or r.marker.evaluate(place)}
    locked = {name for name, entry in _entries().items() if entry.marker is None or entry.marker.evaluate(place)}

    assert wanted - locked == set()
