"""The receiver behind a real nginx, with TLS and a path of its own: pages, uploads and streams, and nobody believed."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import httpx
import pytest
from starlette.routing import Route

from exporter.errors import UsageError
from exporter.missioncontrol.http.app import create_app
from exporter.missioncontrol.http.public import PublicUrl
from exporter.missioncontrol.store.sqlite.store import SqliteStore
from tests.cli.program import command
from tests.otel.certificates import make_certificates
from tests.program.driver import Machine, new_machine
from tests.program.session_files import write_large
from tests.program.waiting import until

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin") is None, reason="needs nginx"),
]
TOKEN: Final = "team-token-of-the-tests"
PAGE: Final = {"Accept": "text/html"}
ADDRESSES: Final = re.compile(r'(?:href|src|action)="([^"#][^"]*)"')


@dataclass
class Public:
    """What serves at `url`, and what the receiver itself listens at."""

    machine: Machine
    url: str
    inner: str
    client: httpx.Client


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def configuration(root: Path, port: int, target: str, *, size: str = "64m") -> str:
    """What docs/operations.md says, with the paths and ports of this test."""
    return f"""
daemon off; pid {root}/nginx.pid; error_log {root}/nginx.log; worker_processes 1; user root;
events {{ }}
http {{
  access_log off;
  client_body_temp_path {root}/body; proxy_temp_path {root}/proxy;
  fastcgi_temp_path {root}/f; uwsgi_temp_path {root}/u; scgi_temp_path {root}/s;
  server {{
    listen 127.0.0.1:{port} ssl;
    ssl_certificate {root}/certificates/server.pem; ssl_certificate_key {root}/certificates/server.key;
    location /mc/ {{
      proxy_pass {target};
      proxy_set_header Host $http_host;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      client_max_body_size {size};
      proxy_read_timeout 1h;
    }}
  }}
}}
"""


@pytest.fixture(params=["path kept", "path taken off"])
def public(request: pytest.FixtureRequest) -> Iterator[Public]:
    with new_machine() as machine:
        folder = machine.root / "certificates"
        folder.mkdir()
        made = make_certificates(folder)
        shutil.copy(made.server, folder / "server.pem") if made.server.name != "server.pem" else None
        shutil.copy(made.server_key, folder / "server.key") if made.server_key.name != "server.key" else None
        token, port, inner = machine.root / "token", free_port(), free_port()
        token.write_text(TOKEN)
        url = f"https://localhost:{port}/mc"
        line = ["mission-control", "serve", "--port", str(inner), "--token-file", str(token), "--public-url", url]
        receiver = subprocess.Popen(
            command(*line, "--state-dir", str(machine.root / "receiver")),
            env=machine.environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8",
        )  # fmt: skip
        assert receiver.stdout is not None
        assert receiver.stdout.readline().strip() == f"{url}/"
        settings = machine.root / "nginx.conf"
        kept = "/mc/" if request.param == "path kept" else "/"
        settings.write_text(configuration(machine.root, port, f"http://127.0.0.1:{inner}{kept}"))
        path = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
        assert path is not None
        proxy = subprocess.Popen([path, "-c", str(settings), "-p", str(machine.root)])
        context = ssl.create_default_context(cafile=made.authority)
        machine.tables["team"] = {"url": f"{url}/agents", "token": TOKEN, "certificate_file": str(made.authority)}
        try:
            with httpx.Client(verify=context, timeout=20) as client:
                until(lambda: answers(client, f"{url}/healthz"), "nginx and the receiver")
                yield Public(machine, url, f"http://127.0.0.1:{inner}", client)
        finally:
            for one in (proxy, receiver):
                one.send_signal(signal.SIGTERM)
                one.wait(20)


def answers(client: httpx.Client, url: str) -> bool:
    try:
        return client.get(url).status_code == 200
    except httpx.TransportError:
        return False


def test_pages_uploads_and_streams_work_below_the_path(public: Public) -> None:
    machine, client, url = public.machine, public.client, public.url
    session = machine.session().write(20)
    write_large(session, 3_000_000)  # more than nginx takes by default
    machine.deliver()
    machine.verify()

    first = client.get(f"{url}/", headers=PAGE)
    door = client.get(f"{url}/enter", headers=PAGE)
    origin = {"Origin": url.removesuffix("/mc")}
    entered = client.post(f"{url}/enter", data={"token": TOKEN}, headers={**PAGE, **origin})
    cookie = entered.headers["set-cookie"]
    assert (first.status_code, first.headers["location"]) == (303, "/mc/enter")
    assert 'action="/mc/enter"' in door.text
    assert (entered.status_code, entered.headers["location"]) == (303, "/mc/")
    assert all(part in cookie for part in ("Path=/mc/", "Secure", "HttpOnly"))

    paths = ["", "feed", "health", f"sessions/{session.id}", f"sessions/{session.id}/forget"]
    for path in paths:
        page = client.get(f"{url}/{path}", headers=PAGE)
        found = ADDRESSES.findall(page.text)
        assert page.status_code == 200, path
        assert [one for one in found if not one.startswith("/mc/")] == [], path
        assert 'data-root="/mc"' in page.text
        assert len(found) > 5

    with client.stream("GET", f"{url}/api/v1/stream?session={session.id}", timeout=10) as stream:
        lines = stream.iter_lines()
        next(lines)
        session.write(1)
        machine.deliver()
        assert any("data:" in line for line in lines), "nothing came through the stream"


def test_nobody_is_believed_for_coming_from_this_machine(public: Public) -> None:
    for root in (public.url, public.inner):
        for headers in ({}, {"X-Forwarded-For": "127.0.0.1"}, {"Forwarded": "for=127.0.0.1"}):
            assert public.client.get(f"{root}/api/v1/sessions", headers=headers).status_code == 401
    bearer = {"Authorization": f"Bearer {TOKEN}"}
    foreign = {"Origin": "https://elsewhere.example.com"}
    assert public.client.get(f"{public.url}/api/v1/sessions", headers=bearer).status_code == 200
    assert public.client.get(f"{public.url}/api/v1/sessions", headers={**bearer, **foreign}).status_code == 403


def test_a_browser_shows_a_session_live(public: Public, browser: Browser) -> None:
    machine = public.machine
    session = machine.session().write(3)
    machine.start()
    context = browser.new_context(ignore_https_errors=True)
    page = context.new_page()
    failed: list[str] = []
    page.on("response", lambda answer: failed.append(answer.url) if answer.status >= 400 else None)
    page.on("pageerror", lambda error: failed.append(str(error)))
    try:
        page.goto(f"{public.url}/")
        page.fill("input[name=token]", TOKEN)
        page.click("button")
        page.wait_for_url(f"{public.url}/")
        page.click(f"a[href='/mc/sessions/{session.id}']")
        page.wait_for_selector(".live:has-text('live')")
        session.append([session.event(text="the proxy lets this through")])
        page.wait_for_selector("text=the proxy lets this through")
        assert failed == []
    finally:
        context.close()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("https://mc.example.com", ("https", "mc.example.com", None, "")),
        ("https://mc.example.com:8443/a/b/", ("https", "mc.example.com", 8443, "/a/b")),
        ("http://[::1]:81/mc", ("http", "::1", 81, "/mc")),
        ("https://a.b/.well/agents", ("https", "a.b", None, "/.well/agents")),
    ],
)
def test_a_public_address_is_read_in_its_parts(text: str, expected: tuple[object, ...]) -> None:
    one = PublicUrl.of(text)

    assert (one.scheme, one.host, one.port, one.root) == expected
    assert str(one) == text.rstrip("/") + "/"


@pytest.mark.parametrize(
    "text",
    [
        "mc.example.com",
        "ftp://a.b",
        "https://",
        "https://u:p@a.b",
        "https://a.b/x?y",
        "https://a.b/../c",
        "https://a.b/c/.",
        "https://a.b/./c",
        "https://a.b/c/..",
        "https://a.b/agents",
        "https://a.b/api/mc",
        "https://a.b/style.css/",
        "https://[::1",
        "https://a.b/<x>",
    ],
)
def test_an_address_that_cannot_be_served_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--public-url"):
        PublicUrl.of(text)


def test_no_public_path_begins_like_an_address_of_ours(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "receiver.db") as store:
        routes = create_app(store).routes
    firsts = {route.path.split("/")[1] for route in routes if isinstance(route, Route)} - {""}

    for first in firsts:
        with pytest.raises(UsageError, match="Mission Control itself"):
            PublicUrl.of(f"https://a.b/{first}/more")
    assert len(firsts) >= 12


def test_a_public_receiver_needs_a_token() -> None:
    with new_machine() as machine:
        answer = machine.exporter(
            "mission-control", "serve", "--port", "0", "--public-url", "https://mc.example.com/mc", "--json"
        )

    assert answer.returncode == 3
    assert "without a token" in json.loads(answer.stdout)["error"]["message"]
