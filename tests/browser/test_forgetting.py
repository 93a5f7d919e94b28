"""A person forgets a session: with the keyboard, asked first, and afterwards its words are in no file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser.conftest import Watched
from tests.browser.receiver import Receiver, event, fill

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

pytestmark = pytest.mark.real
WORD = "wreckage"
LARGE = f"{WORD}-of-a-large-payload " * 4000


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Where the store is."""
    return tmp_path / "store"


@pytest.fixture
def own(place: Path) -> Iterator[Receiver]:
    """A receiver with a session that is full of a word that no other session has."""
    place.mkdir()
    started = Receiver(place)
    fill(started)
    told = [
        event(1, "user.message", {"content": f"Raise the {WORD}"}),
        event(2, "tool.execution_start", {"toolCallId": "c", "toolName": "bash", "arguments": {"command": WORD}}),
        event(3, "tool.execution_complete", {"toolCallId": "c", "success": True, "result": {"content": LARGE}}),
        event(4, "system.notification", {"content": f"the {WORD} is up", "kind": {"type": "agent_idle"}}),
    ]
    started.post("sunk", told)
    started.report("sunk", title=f"The {WORD}", host=f"{WORD}-host", redactions={"2026-11-18": {f"{WORD}-rule": 2}})
    yield started
    started.close()


def holding(place: Path) -> list[str]:
    """The files in which the word is, whatever they are."""
    needles = (WORD.encode(), WORD.encode("utf-16-le"), WORD.upper().encode())
    files = [path for path in place.rglob("*") if path.is_file()]
    assert len(files) >= 2
    return sorted(path.name for path in files if any(needle in path.read_bytes() for needle in needles))


def test_a_session_is_forgotten_with_the_keyboard_alone(own: Receiver, place: Path, context: BrowserContext) -> None:
    watched = Watched(context.new_page(), own.url).watch()
    page = watched.open(f"/?q={WORD}")
    page.locator(".found li a", has_text=WORD).first.wait_for()
    assert holding(place)
    page = watched.open("/sessions/sunk")
    page.locator(".live.on").wait_for()
    _tab_to(page, "Forget…")
    page.keyboard.press("Enter")
    page.locator("dialog").get_by_role("heading", name="Forget this session?").wait_for()
    _tab_to(page, "Cancel")
    page.keyboard.press("Enter")
    page.locator("dialog").wait_for(state="detached")
    assert holding(place)
    _tab_to(page, "Forget…")
    page.keyboard.press("Enter")
    page.locator("dialog").get_by_role("heading", name="Forget this session?").wait_for()
    _tab_to(page, "Forget permanently")
    page.keyboard.press("Enter")

    page.wait_for_url(f"{own.url}/")
    page.locator("tbody tr", has_text="tide table").wait_for()
    assert page.locator("tbody tr", has_text=WORD).count() == 0
    assert holding(place) == []
    assert watched.complaints == []
    answer = page.goto(f"{own.url}/sessions/sunk")
    assert answer is not None
    assert answer.status in (404, 410)


def _tab_to(page: Page, name: str) -> None:
    for _ in range(80):
        if page.evaluate("document.activeElement.textContent.trim()") == name:
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"{name} is not reached with Tab")


def test_without_javascript_too_and_others_who_look_are_told(own: Receiver, place: Path, browser: Browser) -> None:
    looking = browser.new_context()
    other = looking.new_page()
    other.goto(f"{own.url}/sessions/sunk")
    other.locator(".live.on").wait_for()
    plain = browser.new_context(java_script_enabled=False)
    page = plain.new_page()
    page.goto(f"{own.url}/sessions/sunk")
    page.get_by_role("link", name="Forget…").click()
    page.wait_for_url("**/sessions/sunk/forget")
    page.get_by_role("button", name="Forget permanently").click()

    page.wait_for_url(f"{own.url}/")
    assert holding(place) == []
    other.locator(".live", has_text="this session was forgotten").wait_for()
    for context in (looking, plain):
        context.close()


def test_no_page_elsewhere_can_forget_a_session(own: Receiver, place: Path, context: BrowserContext) -> None:
    page = context.new_page()
    foreign = "http://127.0.0.1:1/"
    action = f"{own.url}/sessions/sunk/forget"
    body = f'<form method="post" action="{action}"><button>Win a prize</button></form>'
    page.route(foreign, lambda route: route.fulfill(body=body, content_type="text/html"))
    page.goto(foreign)
    with page.expect_response(action) as answered:
        page.get_by_role("button").click()

    assert answered.value.status == 403
    kept = context.request.get(f"{own.url}/api/v1/sessions/sunk")
    assert kept.ok
    assert holding(place)
