"""Makes the list of what runs, and of the licences: `make sbom`, and `python -m tests.drift.sbom --licences`.

The list is CycloneDX 1.6 as JSON. It depends on `requirements.lock` and on what the installed packages say of
themselves and on nothing else, so that everybody gets the same bytes: no time, a serial number made of the content.
"""

import json
import re
import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from typing import Any, Final

from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from exporter.version import VERSION
from tests.drift.repository import pyproject, text

LOCK: Final = "requirements.lock"
PACKED: Final = "deploy/packages/requirements.lock"
"""What the Debian package, the single file and the image hold: every extra, and nothing for building."""
_ENTRY: Final = re.compile(r"([a-z0-9-]+)==([^ ]+)(?: ; (.+?))? \\$")
_HASH: Final = re.compile(r"--hash=sha256:([0-9a-f]{64})")
_SPDX: Final = {
    "3-Clause BSD License": "BSD-3-Clause",
    "License :: OSI Approved :: Apache Software License": "Apache-2.0",
    "License :: OSI Approved :: BSD License": "BSD-3-Clause",
    "License :: OSI Approved :: MIT License": "MIT",
    "License :: OSI Approved :: Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
}
"""What packages say that have no SPDX expression. "BSD License" is that of jinja2, which has three clauses."""
_ID: Final = re.compile(r"[A-Za-z0-9.-]+")


@dataclass(frozen=True, slots=True)
class Package:
    """A package of the lock. `needs` are others of the lock that it needs on some platform."""

    name: str
    version: str
    marker: str
    hashes: tuple[str, ...]
    licence: str
    needs: tuple[str, ...]

    @property
    def purl(self) -> str:
        return f"pkg:pypi/{self.name}@{self.version}"


def packages(lock: str = LOCK) -> dict[str, Package]:
    """Return every package of the lock, by name; raises `PackageNotFoundError` where one is not installed."""
    blocks = re.split(r"(?m)^(?=[a-z])", text(lock))[1:]
    entries = {}
    for block in blocks:
        match = _ENTRY.match(block.splitlines()[0])
        # What is packed is for this platform.
        if match and (lock == LOCK or not match[3] or Marker(match[3]).evaluate()):
            entries[match[1]] = (match[2], match[3] or "", tuple(sorted(set(_HASH.findall(block)))))
    return {
        name: Package(name, *entry, licence_of(name), tuple(sorted(set(_needs(name)) & entries.keys())))
        for name, entry in sorted(entries.items())
    }


def licence_of(name: str) -> str:
    """Return the licence of an installed package as an SPDX expression."""
    said = metadata.metadata(name)
    words = (said["License"], *(one for one in said.get_all("Classifier") or () if one.startswith("License ::")))
    known = [_SPDX.get(one, one) for one in words if one and (one in _SPDX or _ID.fullmatch(one))]
    return said["License-Expression"] or next(one for one in known if one != "UNKNOWN")


def _needs(name: str) -> Iterator[str]:
    for line in metadata.requires(name) or ():
        wanted = Requirement(line)
        if "extra" not in str(wanted.marker or ""):
            yield canonicalize_name(wanted.name)


def document(lock: str = LOCK) -> str:
    """Return the list as JSON."""
    found = packages(lock)
    project = pyproject()["project"]
    extras = [line for group in project["optional-dependencies"].values() for line in group] if lock == PACKED else []
    named = [canonicalize_name(Requirement(line).name) for line in (*project["dependencies"], *extras)]
    ours: list[str] = [name for name in named if name in found]
    root = f"pkg:pypi/session-exporter@{VERSION}"
    needs = {root: [found[name].purl for name in sorted(ours)]}
    needs |= {one.purl: [found[name].purl for name in one.needs] for one in found.values()}
    runs = _reached(found, ours)
    bom: dict[str, Any] = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": root,
                "name": "session-exporter",
                "version": VERSION,
                "licenses": _licences("Apache-2.0"),
                "purl": root,
            }
        },
        "components": [_component(one, is_run=one.name in runs) for one in found.values()],
        "dependencies": [{"ref": ref, "dependsOn": names} for ref, names in needs.items()],
    }
    content = json.dumps(bom, sort_keys=True)
    bom["serialNumber"] = f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, content)}"
    return json.dumps(bom, indent=1) + "\n"


def _reached(found: dict[str, Package], names: list[str]) -> set[str]:
    reached: set[str] = set()
    while names:
        name = names.pop()
        if name not in reached:
            reached.add(name)
            names.extend(found[name].needs)
    return reached


def _component(one: Package, *, is_run: bool) -> dict[str, Any]:
    component: dict[str, Any] = {
        "type": "library",
        "bom-ref": one.purl,
        "name": one.name,
        "version": one.version,
        "scope": "required" if is_run and not one.marker else "optional" if is_run else "excluded",
        "hashes": [{"alg": "SHA-256", "content": content} for content in one.hashes],
        "licenses": _licences(one.licence),
        "purl": one.purl,
    }
    if one.marker:
        component["properties"] = [{"name": "session-exporter:marker", "value": one.marker}]
    return component


def _licences(expression: str) -> list[dict[str, Any]]:
    return [{"license": {"id": expression}} if _ID.fullmatch(expression) else {"expression": expression}]


def licences() -> str:
    """Return `docs/licences.md`."""
    rows = [f"| {one.name} | {one.licence} |" for one in packages().values()]
    return "\n".join(
        [
            "# Licences",
            "",
            "Made by `python -m tests.drift.sbom --licences` from what the packages of `requirements.lock` say of",
            "themselves; do not edit. `make sbom` makes the same as CycloneDX, with versions and hashes.",
            "[What each is for](decisions/dependencies.md).",
            "",
            "| package | licence (SPDX) |",
            "|---|---|",
            *rows,
            "",
        ]
    )


if __name__ == "__main__":
    sys.stdout.write(licences() if "--licences" in sys.argv else document(PACKED if "--packed" in sys.argv else LOCK))
