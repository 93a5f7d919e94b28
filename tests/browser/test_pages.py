"""A person at a browser: sees, filters, searches, follows, jumps, with a mouse or with keys only, wide or narrow."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.browser.conftest import Watched
from tests.browser.pictures import BYTES_MAX, PICTURES, Picture, difference, take
from tests.browser.receiver import Receiver, event, fill

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.real
PATHS = ("/", "/feed", "/health", "/sessions/demo", "/sessions/waits", "/sessions/demo/waterfall")
DIFFERENCE_MAX = 0.03
"""A page without its style, or with nothing on it, differs by more; other fonts and times by less."""


def test_states_are_told_in_words_and_filter_the_list(watched: Watched) -> None:
    page = watched.open("/")

    assert page.locator("tbody tr").count() == 7
    page.get_by_role("link", name=re.compile("needs attention")).click()

    page.wait_for_url("**/?state=needs_attention")
    assert page.locator("tbody tr").count() == 1
    assert "harbour lights" in page.locator("tbody tr").inner_text()


def test_a_search_narrows_the_list_while_one_types(watched: Watched) -> None:
    page = watched.open("/")
    page.keyboard.press("/")
    page.keyboard.type("lighthouse tide", delay=5)

    page.locator("tbody tr").nth(1).wait_for(state="detached")
    assert page.locator("tbody tr").count() == 1
    assert page.url.endswith("?q=lighthouse+tide")
    page.get_by_role("searchbox").fill("StopIteration")
    found = page.locator(".found li a").first
    found.wait_for()
    found.click()
    page.wait_for_url("**/sessions/demo?at=*")
    assert page.locator(".entry.here").count() == 1


def test_what_arrives_is_there_without_a_reload(watched: Watched, receiver: Receiver) -> None:
    receiver.post("live", [event(1, "user.message", {"content": "Count the buoys"})])
    page = watched.open("/sessions/live")
    page.locator(".live.on").wait_for()
    page.evaluate("window.kept = true")
    took = []
    for number in range(2, 22, 2):
        call = {"toolCallId": f"c{number}", "toolName": "bash", "arguments": {"command": f"buoy {number}"}}
        began = time.monotonic()
        receiver.post("live", [event(number, "tool.execution_start", call)])
        page.locator(f"#e-event-{number}.running").wait_for()
        took.append(time.monotonic() - began)
        done = {"toolCallId": f"c{number}", "success": True, "result": {"content": "one"}}
        receiver.post("live", [event(number + 1, "tool.execution_complete", done)])
        page.locator(f"#e-event-{number}:not(.running)").wait_for()

    assert page.evaluate("window.kept")
    assert page.locator(".timeline > li").count() == 11
    assert sorted(took)[len(took) * 9 // 10] < 0.8, took


def test_a_folded_call_stays_open_while_others_arrive(watched: Watched, receiver: Receiver) -> None:
    call = {"toolCallId": "x", "toolName": "view", "arguments": {"path": "buoys.py"}}
    receiver.post("open", [event(1, "user.message", {"content": "Look"}), event(2, "tool.execution_start", call)])
    page = watched.open("/sessions/open")
    page.locator(".live.on").wait_for()
    page.locator("#e-event-2 summary").click()
    receiver.post("open", [event(3, "tool.execution_complete", {"toolCallId": "x", "result": {"content": "buoy = 1"}})])

    page.locator("#e-event-2 pre.result").wait_for()
    assert page.locator("#e-event-2 details").get_attribute("open") is not None


def test_text_appears_while_it_is_written(watched: Watched, receiver: Receiver) -> None:
    receiver.post("typing", [event(1, "user.message", {"content": "Tell me"})])
    page = watched.open("/sessions/typing")
    page.locator(".live.on").wait_for()
    for number, words in enumerate(["Once upon ", "a <b>tide</b>"]):
        delta = {"messageId": "m", "deltaContent": words}
        receiver.live("typing", [event(5 + number, "assistant.message_delta", delta, ephemeral=True)])

    page.locator(".typing", has_text="Once upon a <b>tide</b>").wait_for()
    told = {"messageId": "m", "content": "Once upon a tide."}
    receiver.post("typing", [event(9, "assistant.message", told)])
    page.locator("#e-event-9", has_text="Once upon a tide.").wait_for()
    page.locator(".typing").wait_for(state="detached")


def test_the_list_follows_too(watched: Watched, receiver: Receiver) -> None:
    page = watched.open("/?q=lagoon")
    page.locator(".live.on").wait_for()
    assert page.locator("tbody tr").count() == 0
    receiver.post("lagoon", [event(1, "user.message", {"content": "Drain the lagoon"})])

    page.locator("tbody tr", has_text="Drain the lagoon").wait_for()
    receiver.post("lagoon", [event(2, "session.shutdown")])
    page.locator("tbody tr .state.ended").wait_for()


def test_a_sub_agent_scopes_the_timeline(watched: Watched) -> None:
    page = watched.open("/sessions/demo")
    whole = page.locator(".timeline > li").count()
    page.locator(".agents a", has_text="tide-historian").click()

    page.wait_for_url("**?agent=*")
    scoped = page.locator(".timeline > li")
    assert 0 < scoped.count() < whole
    assert scoped.count() == page.locator(".timeline > li.child").count()


def test_any_event_opens_as_json_and_keeps_its_address(watched: Watched) -> None:
    page = watched.open("/sessions/demo")
    entry = page.locator(".entry.tool").first
    entry.hover()
    entry.locator(".raw").first.click()
    page.locator("dialog pre", has_text='"toolCallId"').wait_for()
    page.keyboard.press("Escape")
    page.locator("dialog").wait_for(state="detached")
    entry.locator(".at").click()

    assert "?at=" in page.url
    page.reload()
    assert page.locator(".entry.here").count() == 1


def test_keys_jump_to_errors_and_notifications(watched: Watched) -> None:
    page = watched.open("/sessions/demo")
    here = page.locator(".entry.here")
    page.keyboard.press("e")
    assert "exit 1" in here.inner_text()
    assert here.locator("details").get_attribute("open") is not None
    page.keyboard.press("e")
    assert "shell finished" in here.inner_text()
    page.keyboard.press("E")
    assert "FAKE_NOW" in here.inner_text()
    page.keyboard.press("n")
    assert "agent is idle" in here.inner_text()
    page.keyboard.press("N")
    assert "instructions found" in here.inner_text()
    page.keyboard.press("?")
    assert "next notification" in page.locator("dialog").inner_text()


def test_everything_can_be_reached_with_the_keyboard_alone(watched: Watched) -> None:
    page = watched.open("/")
    reached: list[str] = []
    for _ in range(16):
        page.keyboard.press("Tab")
        reached.append(str(page.evaluate("document.activeElement.textContent || document.activeElement.name")))
    assert reached[0] == "Skip to content"
    assert {"Feed", "Redaction & health", "q", "Search"} <= set(reached)
    session = next(text for text in reached if "harbour lights" in text)
    while page.evaluate("document.activeElement.textContent") != session:
        page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    page.wait_for_url("**/sessions/waits")
    page.keyboard.press("j")
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement.classList.contains('here')")
    page.keyboard.press("2")
    page.wait_for_url("**/feed")
    assert "Publish" in page.inner_text("main") or "permission" in page.inner_text("main")


def test_the_waterfall_leads_to_the_events(watched: Watched) -> None:
    page = watched.open("/sessions/demo")
    page.locator(".waterfall li a", has_text="execute_tool bash").first.click()

    assert "make test-all" in page.locator(".entry.here").inner_text()


def test_dark_is_dark_and_can_be_chosen(browser: Browser, receiver: Receiver) -> None:
    context = browser.new_context(color_scheme="dark")
    page = context.new_page()
    page.goto(receiver.url)
    light = "() => Number(getComputedStyle(document.body).backgroundColor.match(/[\\d.]+/)[0]) > 128"

    assert not page.evaluate(light)
    page.get_by_role("button", name="Light or dark").click()
    assert page.evaluate(light)
    page.reload()
    assert page.evaluate(light)
    context.close()


@pytest.mark.parametrize("path", PATHS)
def test_nothing_is_cut_off_on_a_narrow_screen(watched: Watched, path: str) -> None:
    watched.page.set_viewport_size({"width": 360, "height": 740})
    page = watched.open(path)
    page.wait_for_load_state()

    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", PATHS)
def test_axe_finds_nothing_serious(browser: Browser, receiver: Receiver, path: str, scheme: str) -> None:
    from tests.browser.axe import findings

    # Our policy forbids foreign scripts, and that is what axe is here.
    context = browser.new_context(color_scheme="dark" if scheme == "dark" else "light", bypass_csp=True)
    page = context.new_page()
    page.goto(receiver.url + path)
    page.locator(".live.on, .waterfall").first.wait_for()

    assert findings(page) == []
    context.close()


@pytest.mark.parametrize("path", PATHS)
def test_pages_read_well_without_javascript(browser: Browser, receiver: Receiver, path: str) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(receiver.url + path)

    assert len(page.inner_text("main")) > 100
    for link in page.locator("main a").all()[:12]:
        address = link.get_attribute("href") or ""
        assert address.startswith(("/", "#"))
        if "export" not in address and address.startswith("/"):
            assert context.request.get(receiver.url + address).ok, address
    context.close()


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Receiver]:
    """A receiver that no other test has put anything into."""
    started = Receiver(tmp_path_factory.mktemp("fresh"))
    fill(started)
    yield started
    started.close()


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.name)
def test_a_page_looks_as_in_the_documentation(browser: Browser, fresh: Receiver, picture: Picture) -> None:
    shown, kept = take(browser, fresh.url, picture), picture.file.read_bytes()

    assert len(kept) < BYTES_MAX
    assert difference(browser, shown, kept) < DIFFERENCE_MAX
