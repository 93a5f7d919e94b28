"""The list of what runs agrees with the lock, is the same each time, and has what CycloneDX asks for."""

import json
import re
import subprocess
import sys
from functools import cache
from importlib import metadata
from typing import Any, Final

import pytest

from tests.drift import sbom
from tests.drift.repository import ROOT, text

PERMISSIVE: Final = {
    "Apache-2.0", "Apache-2.0 AND BSD-2-Clause", "Apache-2.0 OR BSD-2-Clause",
    "BSD-2-Clause", "BSD-3-Clause", "MIT", "MPL-2.0", "PSF-2.0",
}  # fmt: skip
"""What the decision about dependencies allows; MPL-2.0 only for what we neither change nor ship."""


@cache
def bom() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(sbom.document())
    return found


def test_it_holds_the_packages_of_the_lock_and_no_other() -> None:
    locked = re.findall(r"(?m)^([a-z0-9-]+)==([^ ]+)", text("requirements.lock"))
    hashes = re.findall(r"sha256:([0-9a-f]{64})", text("requirements.lock"))

    assert [(one["name"], one["version"]) for one in bom()["components"]] == sorted(locked)
    assert sorted(one["content"] for part in bom()["components"] for one in part["hashes"]) == sorted(set(hashes))


def test_what_is_installed_is_what_is_locked() -> None:
    assert {one.name: one.version for one in sbom.packages().values()} == {
        name: metadata.version(name) for name in sbom.packages()
    }


def test_it_is_the_same_each_time() -> None:
    again = subprocess.run([sys.executable, "-m", "tests.drift.sbom"], cwd=ROOT, capture_output=True, check=True)

    assert again.stdout.decode() == sbom.document()
    assert "timestamp" not in sbom.document()


def test_it_has_what_the_schema_of_cyclonedx_asks_for() -> None:
    references = [bom()["metadata"]["component"]["bom-ref"], *(one["bom-ref"] for one in bom()["components"])]

    assert (bom()["bomFormat"], bom()["specVersion"], bom()["version"]) == ("CycloneDX", "1.6", 1)
    assert re.fullmatch(r"urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", bom()["serialNumber"])
    assert len(set(references)) == len(references)
    for component in bom()["components"]:
        assert component["type"] == "library"
        assert component["scope"] in ("required", "optional", "excluded")
        assert component["purl"] == f"pkg:pypi/{component['name']}@{component['version']}"
        assert {one["alg"] for one in component["hashes"]} == {"SHA-256"}
        assert len(component["licenses"]) == 1
    assert [one["ref"] for one in bom()["dependencies"]] == references
    assert {name for one in bom()["dependencies"] for name in one["dependsOn"]} <= set(references)


@pytest.mark.parametrize(
    ("name", "scope"),
    [("httpcore", "required"), ("certifi", "required"), ("hatchling", "excluded"), ("watchfiles", "optional")],
)
def test_it_tells_what_runs_from_what_only_builds(name: str, scope: str) -> None:
    [found] = [one["scope"] for one in bom()["components"] if one["name"] == name]

    assert found == scope


def test_every_licence_is_one_that_was_decided_for() -> None:
    assert {one.licence for one in sbom.packages().values()} <= PERMISSIVE


def test_the_document_of_licences_is_up_to_date() -> None:
    assert text("docs/licences.md") == sbom.licences()
