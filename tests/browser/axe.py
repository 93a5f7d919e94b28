"""axe-core, which finds what people with other senses cannot use; from the npm registry, kept in the cache."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from playwright.sync_api import Page

from tests.real import install

VERSION = "4.11.4"
SERIOUS = ("serious", "critical")


def script() -> str:
    """The script, which is installed first if it is missing."""
    root = install.directory()
    root.mkdir(parents=True, exist_ok=True)
    with install.locked(root):
        return install.part(root / f"axe-core-{VERSION}", _found, _install).read_text(encoding="utf-8")


def _found(place: Path) -> Path | None:
    path = place / "node_modules/axe-core/axe.min.js"
    return path if path.exists() else None


def _install(place: Path) -> None:
    install.npm_install(place, f"axe-core@{VERSION}")


def findings(page: Page) -> list[str]:
    """What is serious on a page, with the places."""
    page.evaluate(script())
    result: dict[str, Any] = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{found['id']}: {found['help']}: {node['target']} {node['failureSummary']}"
        for found in result["violations"]
        if found["impact"] in SERIOUS
        for node in found["nodes"][:3]
    ]
