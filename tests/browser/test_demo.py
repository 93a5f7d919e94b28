"""The first run: `exporter up --demo` gives an address, and behind it a session grows and is told from its end."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser.conftest import Watched
from tests.browser.program import environment, running

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext

pytestmark = pytest.mark.real
DEMO_MILLISECONDS_MAX = 60_000


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """Where the page of a fresh `up --demo` is."""
    with running(environment(tmp_path), "up", "--demo", "--no-open") as printed:
        yield printed.rstrip("/")


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
    marked = page.locator("mark", has_text="github-pat-classic")
    assert marked.first.get_attribute("title")
    assert "ghp_" not in page.content()
    assert page.evaluate("window.kept")
    page.goto(f"{address}/health")
    page.locator("th", has_text="aws-access-key-id").wait_for()
    assert watched.complaints == []
