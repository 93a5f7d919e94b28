"""The first run: `exporter up --demo` gives an address, and behind it a session grows and is told from its end."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser.conftest import Watched

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext

pytestmark = pytest.mark.real
ROOT = Path(__file__).resolve().parents[2]
DEMO_MILLISECONDS_MAX = 60_000


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """Where the page of a fresh `up --demo` is."""
    places = {f"XDG_{name}_HOME": str(tmp_path / name) for name in ("STATE", "CACHE", "CONFIG", "DATA")}
    own = {"EXPORTER_STATE_DIR": str(tmp_path / "state"), "COPILOT_HOME": str(tmp_path / "copilot")}
    command = [sys.executable, "-m", "exporter", "up", "--demo", "--no-open"]
    started = subprocess.Popen(
        command, cwd=ROOT, env={**os.environ, **places, **own}, stdout=subprocess.PIPE, text=True
    )
    assert started.stdout is not None
    try:
        found = None
        while found is None:
            line = started.stdout.readline()
            assert line, "it ended without an address"
            found = re.search(r"http://127\.0\.0\.1:\d+", line)
        yield found[0]
    finally:
        started.send_signal(signal.SIGINT)
        started.wait(20)


@pytest.mark.timeout(150)
def test_the_first_run_shows_a_session_that_grows(context: BrowserContext, address: str) -> None:
    watched = Watched(context.new_page(), address).watch()
    page = watched.open("/")
    page.get_by_role("link", name=re.compile("tide table")).click()
    page.wait_for_url("**/sessions/*")
    page.locator(".live.on").wait_for()
    page.evaluate("window.kept = true")
    page.locator(".agents a", has_text="tide-historian").wait_for(timeout=DEMO_MILLISECONDS_MAX)
    page.locator(".entry.mark", has_text="Session ended").wait_for(timeout=DEMO_MILLISECONDS_MAX)

    page.locator(".head .state.ended").wait_for()
    page.get_by_text("masked by the rule").count()
    marked = page.locator("mark", has_text="github-pat-classic")
    assert marked.first.get_attribute("title")
    assert "ghp_" not in page.content()
    assert page.evaluate("window.kept")
    page.goto(f"{address}/health")
    page.locator("th", has_text="aws-access-key-id").wait_for()
    assert watched.complaints == []
