"""The program as one file, for a Python that is there: `python -m deploy.packages.single_file WHEEL FILE [PYTHON]`.

Compiled libraries cannot be loaded out of an archive, so the file unpacks itself, once, into the cache of the user.
"""

import hashlib
import stat
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Final

from deploy.packages.tree import make_tree

_FIRST_LINE: Final = b"#!/usr/bin/env python3\n"
_DATE: Final = (2020, 2, 2, 0, 0, 0)
_START: Final = '''\
"""Unpacks the program beside which this file stands in the archive, once, and starts it."""

import os
import sys

PYTHON, DIGEST = {python!r}, {digest!r}


def _place():
    base = os.environ.get("XDG_CACHE_HOME", "")
    base = base if os.path.isabs(base) else os.path.expanduser("~/.cache")
    return os.path.join(base, "exporter", "program-" + DIGEST)


def _unpack(place):
    import shutil
    import tempfile
    import zipfile

    os.makedirs(os.path.dirname(place), mode=0o700, exist_ok=True)
    made = tempfile.mkdtemp(prefix="unpacking-", dir=os.path.dirname(place))
    with zipfile.ZipFile(os.path.dirname(os.path.abspath(__file__))) as archive:
        archive.extractall(made)
    try:
        os.rename(made, place)
    except OSError:  # another start was faster
        shutil.rmtree(made, ignore_errors=True)


def main():
    if "%d.%d" % sys.version_info[:2] != PYTHON:
        sys.exit("this file is for Python " + PYTHON + ", and " + sys.executable + " is %d.%d" % sys.version_info[:2])
    place = _place()
    if not os.path.isdir(place):
        _unpack(place)
    status = os.stat(place)
    if hasattr(os, "getuid") and (status.st_uid != os.getuid() or status.st_mode & 0o022):
        sys.exit(place + " is not yours alone: delete it, then start again")
    sys.path.insert(0, place)
    from exporter.__main__ import main

    return main()


if __name__ == "__main__":
    sys.exit(main())
'''


def make_single_file(tree: Path, file: Path, *, python: str) -> Path:
    """Write the file, the same bytes for the same tree; it runs on this minor version of Python only."""
    names = sorted(path for path in tree.rglob("*") if path.is_file())
    digest = hashlib.sha256()
    for path in names:
        digest.update(f"{path.relative_to(tree)}\n".encode() + hashlib.sha256(path.read_bytes()).digest())
    with file.open("wb") as target:
        target.write(_FIRST_LINE)
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            start = _START.format(python=python, digest=digest.hexdigest()[:16])
            archive.writestr(_entry("__main__.py"), start, zipfile.ZIP_DEFLATED)
            for path in names:
                archive.writestr(_entry(str(path.relative_to(tree))), path.read_bytes(), zipfile.ZIP_DEFLATED)
    file.chmod(0o755)
    return file


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, _DATE)
    entry.external_attr = (stat.S_IFREG | 0o644) << 16
    return entry


def main(wheel: str, file: str, python: str = "{}.{}".format(*sys.version_info[:2])) -> None:
    """Make the file of a wheel."""
    with tempfile.TemporaryDirectory() as directory:
        tree = make_tree(Path(wheel), Path(directory, "tree"), python=python)
        print(make_single_file(tree, Path(file), python=python))  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
