"""Who gets in: by an address that works once, by a token in the form, and no other user of the machine."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser.conftest import Watched
from tests.browser.program import ADDRESS, COMMAND, ROOT, environment, running

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="needs to become another user"),
]
SECONDS_MAX = 20
NOBODY = 65_534
# With a socket alone, because another user may not be able to read the modules of this Python.
ASK = """
import os, socket, sys
os.setuid(int(sys.argv[1]))
for place in sys.argv[2:]:
    port, _, path = place.partition("/")
    asked = socket.socket()
    asked.settimeout(10)
    asked.connect(("127.0.0.1", int(port)))
    head = f"GET /{path} HTTP/1.1", "Host: localhost", "Accept: text/html", "Connection: close"
    asked.sendall("".join(line + chr(13) + chr(10) for line in (*head, "")).encode())
    print(asked.recv(4096).split()[1].decode())
"""


def statuses(uid: int, *addresses: str) -> list[str]:
    """The status that a user of this number gets at each of these addresses."""
    places = [address.removeprefix("http://127.0.0.1:") for address in addresses]
    command = [sys.executable, "-I", "-c", ASK, str(uid), *places]
    return subprocess.run(
        command, cwd="/", stdout=subprocess.PIPE, text=True, timeout=SECONDS_MAX, check=True
    ).stdout.split()


def test_another_user_of_the_machine_sees_nothing_of_up(tmp_path: Path) -> None:
    with running(environment(tmp_path), "up", "--demo", "--no-open") as address:
        asked = [address + path for path in ("", "feed", "api/v1/sessions", "api/v1/stream", "metrics")]
        other, own = statuses(NOBODY, *asked), statuses(0, address)

    assert other == ["403"] * len(asked)
    assert own == ["200"]


def test_where_users_cannot_be_told_apart_the_printed_address_opens_the_page_once(
    tmp_path: Path, context: BrowserContext, browser: Browser
) -> None:
    with running(environment(tmp_path), "up", "--demo", "--no-open", tells_users=False) as address:
        origin = address.partition("/enter")[0]
        before = statuses(NOBODY, f"{origin}/", f"{origin}/api/v1/sessions", f"{origin}/healthz")
        watched = Watched(context.new_page(), origin).watch()
        page = watched.open(address.removeprefix(origin))
        page.get_by_role("heading", name="Sessions").wait_for()
        page.locator(".live.on").wait_for()
        page.reload()
        page.get_by_role("heading", name="Sessions").wait_for()
        stolen = statuses(NOBODY, address)
        once_more = [*COMMAND, "up", "--demo", "--no-open"]
        again = subprocess.run(
            once_more, cwd=ROOT, env=environment(tmp_path), capture_output=True, text=True, timeout=60, check=True
        ).stdout
        elsewhere = browser.new_context()
        other = elsewhere.new_page()
        other.goto(f"{origin}/")
        other.get_by_label("Token").wait_for()
        fresh = ADDRESS.search(again)
        assert fresh, again
        other.goto(fresh[0])
        other.get_by_role("heading", name="Sessions").wait_for()
        elsewhere.close()

    assert "/enter?once=" in address
    assert fresh[0] != address
    assert before == ["303", "303", "200"]
    assert stolen == ["401"]
    assert watched.complaints == []


def test_a_token_in_the_form_opens_the_page(tmp_path: Path, context: BrowserContext) -> None:
    made = [*COMMAND, "mission-control", "token", "create", "ann"]
    token = subprocess.run(
        made, cwd=ROOT, env=environment(tmp_path), capture_output=True, text=True, timeout=60, check=True
    ).stdout.strip()
    with running(environment(tmp_path), "mission-control", "serve", "--port", "0", tells_users=False) as address:
        origin = address.partition("/enter")[0]
        watched = Watched(context.new_page(), origin).watch()
        page = watched.open("/")
        page.get_by_label("Token").fill(token[:-1])
        page.keyboard.press("Enter")
        page.get_by_role("alert").wait_for()
        refused = [one for one in watched.complaints if "401" not in one]
        watched.complaints.clear()
        page.get_by_label("Token").fill(token)
        page.get_by_role("button", name="Sign in").click()
        page.get_by_role("heading", name="Sessions").wait_for()
        page.locator(".live.on").wait_for()

    assert refused == []
    assert watched.complaints == []


def test_a_page_that_is_kept_open_lives_through_restarts(tmp_path: Path, context: BrowserContext) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        serve = ("mission-control", "serve", "--port", str(probe.getsockname()[1]))
    page = context.new_page()
    with running(environment(tmp_path), *serve) as address:
        page.goto(address)
        page.locator(".live.on").wait_for()
        page.evaluate("window.kept = true")
    page.locator(".live.off").wait_for()
    with running(environment(tmp_path), *serve):
        page.locator(".live.on").wait_for()
        assert page.evaluate("window.kept")
    page.locator(".live.off").wait_for()
    with running(environment(tmp_path), *serve, tells_users=False):
        page.get_by_label("Token").wait_for()
