"""Every change that a person can notice is told, in the form that `changelog.d/README.md` asks for."""

import re

from exporter.version import VERSION
from tests.drift.repository import ROOT, text


def test_the_changelog_knows_the_version() -> None:
    assert re.search(rf"(?m)^## {re.escape(VERSION)}\b", text("CHANGELOG.md"))


def test_an_entry_has_a_kind_in_its_name_and_is_short() -> None:
    wrong = []
    for path in sorted((ROOT / "changelog.d").iterdir()):
        lines = path.read_text(encoding="utf-8").splitlines()
        named = path.name == "README.md" or re.fullmatch(r"(added|changed|fixed|removed)-[a-z0-9-]+\.md", path.name)
        if not named or not 1 <= len(lines) <= 12 or max(map(len, lines)) > 120:
            wrong.append(path.name)

    assert wrong == []
