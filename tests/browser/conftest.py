"""Chromium, a receiver with sessions in it, and a page that complains about everything it should not do."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser.receiver import Receiver, fill

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
WIDE = {"width": 1360, "height": 900}


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """The browser of this machine; without one, or without playwright, its tests are skipped and say so."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: run make")
    if not Path(CHROMIUM).exists():
        pytest.skip(f"NO BROWSER TESTS: {CHROMIUM} is not here (Debian, Ubuntu: apt-get install chromium)")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@dataclass(slots=True)
class Watched:
    """A page, and what it did that no page may do."""

    page: Page
    origin: str
    complaints: list[str] = field(default_factory=list)

    def open(self, path: str) -> Page:
        """Go to a page of the receiver."""
        self.page.goto(self.origin + path)
        return self.page

    def watch(self) -> Watched:
        """Note errors on the console, failures of the script, dialogs, and requests to another origin."""
        page, noted = self.page, self.complaints
        page.on("console", lambda said: noted.append(f"{said.type}: {said.text}") if said.type != "log" else None)
        page.on("pageerror", lambda error: noted.append(f"error: {error}"))
        page.on("dialog", lambda shown: noted.append(f"dialog: {shown.message}"))
        page.on(
            "request",
            lambda asked: None if asked.url.startswith(self.origin + "/") else noted.append(f"foreign: {asked.url}"),
        )
        return self


@pytest.fixture(scope="module")
def receiver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Receiver]:
    """A receiver with sessions of every state in it."""
    started = Receiver(tmp_path_factory.mktemp("receiver"))
    fill(started)
    yield started
    started.close()


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    """A browser window of ordinary size."""
    opened = browser.new_context(viewport={"width": 1360, "height": 900})
    yield opened
    opened.close()


@pytest.fixture
def watched(context: BrowserContext, receiver: Receiver) -> Iterator[Watched]:
    """A page; the test fails when it did what no page may do."""
    opened = Watched(context.new_page(), receiver.url).watch()
    yield opened
    assert opened.complaints == []


@pytest.fixture(params=[1, 12], ids=["here", "slow"])
def paced(request: pytest.FixtureRequest, watched: Watched) -> Watched:
    """The same page on this machine, and on one that is many times slower: an effect of a key may come late there."""
    session = watched.page.context.new_cdp_session(watched.page)
    session.send("Emulation.setCPUThrottlingRate", {"rate": request.param})
    return watched
