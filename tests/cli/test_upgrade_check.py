"""`exporter upgrade-check` asks an index when it is called, and reads what indexes answer."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import PurePath

import pytest

from exporter.errors import Exit, ExporterError
from exporter.version import VERSION
from exporter.wiring.upgrade import newest_in, upgrade_way
from tests.cli.program import exporter

HTML = "text/html"
JSON = "application/vnd.pypi.simple.v1+json"
FILES = [
    "session_exporter-0.1.0-py3-none-any.whl",
    "session_exporter-12.0.0.tar.gz",
    "session_exporter-9.4-py3-none-any.whl",
]


def page(*names: str, yanked: str = "") -> bytes:
    files = [{"filename": name, "yanked": name == yanked and "broken"} for name in names]
    return json.dumps({"files": files}).encode()


@contextmanager
def index(status: int, kind: str, body: bytes) -> Iterator[tuple[str, list[dict[str, str]]]]:
    """An index on loopback, and the headers of each request to it, with its path."""
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append({"path": self.path, **{name.lower(): value for name, value in self.headers.items()}})
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"127.0.0.1:{server.server_port}/simple", asked
    finally:
        server.shutdown()
        server.server_close()


def test_a_newer_version_is_told_with_the_way_to_it() -> None:
    with index(200, JSON, page(*FILES)) as (place, asked):
        answer = exporter("upgrade-check", "--json", PIP_INDEX_URL=f"http://me:word@{place}/")
        text = exporter("upgrade-check", "--index", f"http://{place}").stdout

    found = json.loads(answer.stdout)
    assert (answer.returncode, found["version"], found["newest"], found["newer"]) == (
        Exit.DONE,
        VERSION,
        "12.0.0",
        True,
    )
    assert "12.0.0 is there" in text
    assert found["upgrade"] in text
    assert asked[0]["path"] == "/simple/session-exporter/"
    assert asked[0]["authorization"] == "Basic bWU6d29yZA=="
    assert "word" not in answer.stdout
    assert set(asked[1]) <= {"path", "host", "accept", "user-agent"}


def test_the_newest_and_a_package_that_is_not_there_are_no_errors() -> None:
    with index(200, JSON, page(FILES[0])) as (place, _):
        newest = exporter("upgrade-check", "--index", f"http://{place}")
    with index(404, HTML, b"nothing") as (place, _):
        nowhere = exporter("upgrade-check", "--index", f"http://{place}")

    assert (newest.returncode, newest.stdout) == (Exit.DONE, f"{VERSION} is the newest\n")
    assert (nowhere.returncode, "has no session-exporter" in nowhere.stdout) == (Exit.DONE, True)


def test_an_index_that_does_not_answer_is_named_without_its_password() -> None:
    down = exporter("upgrade-check", "--index", "http://me:word@127.0.0.1:9/simple")
    with index(503, HTML, b"later") as (place, _):
        busy = exporter("upgrade-check", "--index", f"http://{place}")
    none = exporter("upgrade-check", "--index", "nonsense")
    unnamed = exporter("upgrade-check", PIP_INDEX_URL="", UV_DEFAULT_INDEX="", UV_INDEX_URL="")

    assert (down.returncode, busy.returncode, none.returncode) == (
        Exit.UNREACHABLE, Exit.UNREACHABLE, Exit.CONFIGURATION
    )  # fmt: skip
    assert "http://127.0.0.1:9/simple does not tell" in down.stderr
    assert "word" not in down.stderr
    assert "503" in busy.stderr
    assert (unnamed.returncode, "no package index is named" in unnamed.stderr) == (Exit.CONFIGURATION, True)


@pytest.mark.parametrize(
    ("kind", "body", "newest"),
    [
        (JSON, page(*FILES), "12.0.0"),
        (JSON, page(*FILES, yanked=FILES[1]), "9.4"),
        (JSON, page("session_exporter-2.0rc1.tar.gz", "other-3.0.tar.gz"), None),
        (HTML, f'<a href="x#sha256=0">{FILES[1]}</a><br><a href="y">{FILES[2]}</a>'.encode(), "12.0.0"),
        (HTML, f'<a href="x" data-yanked="">{FILES[1]}</a><a href="y">{FILES[2]}</a>'.encode(), "9.4"),
        ("", b"", None),
    ],
)
def test_the_newest_final_version_that_was_not_withdrawn_counts(kind: str, body: bytes, newest: str | None) -> None:
    assert newest_in(kind, body) == newest


@pytest.mark.parametrize("body", [b"", b"[]", b'{"files": 3}', b'{"files": [{}]}', b'{"files": ["a"]}'])
def test_an_answer_that_is_no_list_is_an_error(body: bytes) -> None:
    with pytest.raises(ExporterError, match="no list"):
        newest_in(JSON, body)


@pytest.mark.parametrize(
    ("place", "program", "way"),
    [
        ("/home/me/.local/share/pipx/venvs/session-exporter", "exporter", "pipx upgrade session-exporter"),
        ("/home/me/.local/share/uv/tools/session-exporter", "exporter", "uv tool upgrade session-exporter"),
        ("/usr/lib/session-exporter/exporter/a.py", "exporter", "install the newer Debian package"),
        ("/opt/session-exporter/lib/exporter/a.py", "exporter", "use the newer image"),
        ("/usr", "/srv/exporter.pyz", "put the newer file in place of /srv/exporter.pyz"),
        ("/srv/env", "exporter", "pip install --upgrade session-exporter"),
    ],
)
def test_the_way_is_that_of_the_installation(place: str, program: str, way: str) -> None:
    assert upgrade_way(PurePath(place), PurePath(program)) == way
