"""Nothing in the repository tells where it was made."""

import re
from typing import Final

from tests.drift.repository import ROOT, files

HOSTS: Final = (
    "pypi" + ".org",
    "pythonhosted" + ".org",
    "npmjs" + ".org",
    "npmjs" + ".com",
    "debian" + ".org",
    "yarnpkg" + ".com",
)
PATHS: Final = re.compile(rb"(?<![\w.~$}*-])/(?:root|work|opt/(?:pypi|wheels))/")


def test_no_package_registry_is_named() -> None:
    named = [
        f"{path.relative_to(ROOT)}: {host}" for path in files() for host in HOSTS if host.encode() in path.read_bytes()
    ]

    assert named == []


def test_no_path_of_the_machine_that_wrote_it_is_left() -> None:
    left = [
        f"{path.relative_to(ROOT)}: {match[0].decode()}"
        for path in files()
        for match in PATHS.finditer(path.read_bytes())
        if path.name != "test_places.py"
    ]

    assert left == []
