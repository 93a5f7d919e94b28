"""Nothing that an event says runs in a browser, and a long session scrolls."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.browser.conftest import Watched
from tests.browser.receiver import Receiver, event
from tests.missioncontrol.test_pages_hostile import PAYLOADS, spoilt

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.real
LIVE = ("assistant.message_delta", "tool.execution_partial_result", "tool.execution_progress", "tool.shell_output")
COUNT = 20_000


def _armed(page: Page) -> None:
    page.add_init_script("window.alert = () => { window.ran = true; console.error('a payload ran'); };")


@pytest.mark.parametrize("number", range(len(PAYLOADS)))
def test_no_payload_runs_wherever_it_is_shown(watched: Watched, receiver: Receiver, number: int) -> None:
    payload, session = PAYLOADS[number], f"hostile-{number}"
    events = [json.loads(line) for line in spoilt(payload)]
    receiver.post(session, events[:-20])
    receiver.report(session, title=payload, repository=payload, branch=payload, host=payload)
    _armed(watched.page)
    page = watched.open(f"/sessions/{session}?all=1")
    page.locator(".live.on").wait_for()
    receiver.post(session, events[-20:])
    data = {
        "messageId": f"{payload}, being written",
        "toolCallId": payload,
        "deltaContent": payload,
        "partialOutput": payload,
    }
    receiver.live(session, [event(1, type, {**data, "progressMessage": payload}, ephemeral=True) for type in LIVE])
    page.locator(".typing").wait_for()
    for key in ("e", "n", "j", "r"):
        page.keyboard.press(key)
    page.locator("dialog article").wait_for()
    page.keyboard.press("Escape")
    for path in ("/", "/feed", f"/?q={number}", "/health", f"/sessions/{session}/waterfall"):
        watched.open(path)
        page.wait_for_load_state()
        assert not page.evaluate("window.ran === true")
        assert page.evaluate("document.scripts.length") == 1

    assert not page.evaluate("document.querySelectorAll('img, iframe, b[onmouseover], i').length")


def test_a_long_session_opens_at_its_end_and_scrolls_back_in_windows(watched: Watched, receiver: Receiver) -> None:
    types = ("assistant.turn_start", "assistant.message", "tool.execution_start", "tool.execution_complete")
    receiver.post(
        "long",
        (
            event(n, types[n % 4], {"toolCallId": f"c{n // 2}", "content": f"said {n} " * 20, "toolName": "bash"})
            for n in range(COUNT)
        ),
    )
    page = watched.open("/sessions/long")
    page.locator(".live.on").wait_for()
    took = page.evaluate("performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd")
    first = page.locator(".timeline > li").first.get_attribute("id")
    page.evaluate("scrollTo(0, 0)")
    for _ in range(12):
        page.mouse.wheel(0, -3000)
        page.wait_for_timeout(120)

    assert page.locator(".timeline > li").first.get_attribute("id") != first
    assert page.locator(".timeline > li").count() <= 2400
    ids = [
        int(str(id).rpartition("-")[2])
        for id in page.locator(".timeline > li").evaluate_all("all => all.map(one => one.id)")
    ]
    assert ids == sorted(ids)
    print(f"a session of {COUNT} events: DOMContentLoaded after {took:.0f} ms")
    assert took < 1500
