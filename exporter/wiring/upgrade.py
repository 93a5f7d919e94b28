"""Is there a newer version? Asked of a package index when a person asks for it, and never else."""

import json
import re
import sys
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

from exporter.errors import Exit, ExporterError, SettingsError
from exporter.version import VERSION

_NAME: Final = "session-exporter"
_VARIABLES: Final = ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL")
_FILE: Final = re.compile(r"session_exporter-(\d+(?:\.\d+)*)(?:-[^/]*\.whl|\.tar\.gz)")
_LINK: Final = re.compile(r"<a\s([^>]*)>\s*([^<]+?)\s*</a>")
_ACCEPTED: Final = "application/vnd.pypi.simple.v1+json, text/html;q=0.5"
_ANSWER_BYTES_MAX: Final = 8 << 20
_TIMEOUT_SECONDS: Final = 20.0
_WAYS: Final = (
    (("pipx", "venvs"), f"pipx upgrade {_NAME}"),
    (("uv", "tools"), f"uv tool upgrade {_NAME}"),
    (("lib", _NAME), "install the newer Debian package"),
    (("opt", _NAME), "use the newer image"),
)
"""Where this program stands, by a part of its path, and how a newer one comes there."""


class UnreachableError(ExporterError):
    kind = "unreachable"
    exit = Exit.UNREACHABLE


def index_of(environ: Mapping[str, str], chosen: str | None = None) -> str:
    """Return the index to ask: the chosen one, or that of uv or pip in the environment. Raises `SettingsError`."""
    index = chosen or next((environ[name] for name in _VARIABLES if environ.get(name)), "")
    if urlsplit(index).scheme not in ("http", "https") or not urlsplit(index).hostname:
        said = "the address of the index is none" if index else "no package index is named"
        raise SettingsError(said, hint="name an https:// address with --index, or in PIP_INDEX_URL")
    return index.rstrip("/")


async def upgrade_check(index: str) -> dict[str, Any]:
    """Return this version, the newest one there (None: the index has none) and how to get it.

    Raises `ExporterError` when the index does not answer. The request tells the index the name of this package and
    nothing else; a user and a password in its address are sent to it.
    """
    from exporter.sinks.transport import NoAnswerError

    shown = _without_password(index)
    try:
        newest = newest_in(*await _page(index))
    except NoAnswerError as error:
        raise _no_answer(shown, str(error)) from None
    is_newer = newest is not None and _order(newest) > _order(VERSION)
    way = upgrade_way(PurePath(__file__), PurePath(sys.argv[0])) if is_newer else None
    return {"version": VERSION, "newest": newest, "newer": is_newer, "index": shown, "upgrade": way}


async def _page(index: str) -> tuple[str, bytes]:
    import base64

    from config.proxy import proxy_for
    from exporter.sinks.http_transport import HttpTransport

    parts = urlsplit(index)
    headers = {"accept": _ACCEPTED, "user-agent": f"{_NAME}/{VERSION}"}
    if parts.username is not None:
        user = f"{parts.username}:{parts.password or ''}"
        headers["authorization"] = f"Basic {base64.b64encode(user.encode()).decode()}"
    address = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
    proxy = proxy_for("env", address)
    transport = HttpTransport(
        address, connections=1, timeout_seconds=_TIMEOUT_SECONDS, proxy=proxy.url if proxy else None
    )
    try:
        answer = await transport.request("GET", f"/{_NAME}/", headers, b"", answer_bytes_max=_ANSWER_BYTES_MAX)
    finally:
        await transport.close()
    if answer.status == 404:
        return "", b""
    if answer.status != 200 or not answer.whole:
        raise _no_answer(_without_password(index), f"it answers {answer.status}")
    return answer.headers.get("content-type", ""), answer.body


def newest_in(kind: str, page: bytes) -> str | None:
    """Return the newest final version in a page of an index (PEP 503 or 691) that was not withdrawn."""
    if "json" in kind:
        try:
            listed = json.loads(page)["files"]
            names = [one["filename"] for one in listed if not one.get("yanked")]
        except (ValueError, KeyError, TypeError, AttributeError):
            raise ExporterError("the index answers what is no list of files", hint="name another --index") from None
    else:
        links = _LINK.findall(page.decode("utf-8", "replace"))
        names = [name for attributes, name in links if "data-yanked" not in attributes]
    found = [match[1] for name in names if (match := _FILE.fullmatch(name))]
    return max(found, key=_order, default=None)


def upgrade_way(place: PurePath, program: PurePath) -> str:
    """Return the command by which a program becomes newer whose modules are at that place."""
    if program.suffix == ".pyz":
        return f"put the newer file in place of {program}"
    for directories, command in _WAYS:
        if any(place.parts[at : at + 2] == directories for at in range(len(place.parts))):
            return command
    return f"pip install --upgrade {_NAME}"


def _order(version: str) -> tuple[int, ...]:
    numbers = [int(one) for one in version.split(".") if one.isdigit()]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def _without_password(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def _no_answer(index: str, why: str) -> UnreachableError:
    return UnreachableError(f"{index} does not tell what is there: {why}", hint="name another index with --index")
