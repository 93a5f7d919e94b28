"""Nothing that an event says runs in a browser."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import pytest

from tests.browser.conftest import Watched
from tests.browser.receiver import Receiver, event
from tests.missioncontrol.pages.test_hostile import PAYLOADS, spoilt

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.real
LIVE = ("assistant.message_delta", "tool.execution_partial_result", "tool.execution_progress", "tool.shell_output")
HANDLERS = """[...document.querySelectorAll("*")].flatMap((one) => one.getAttributeNames())
  .filter((one) => /^on/i.test(one))"""
ADDRESSES = """[...document.querySelectorAll("[href], [src], [action], [formaction]")]
  .map((one) => one.href || one.src || one.action)"""


def _armed(page: Page) -> None:
    page.add_init_script("window.alert = () => { window.ran = true; console.error('a payload ran'); };")


@pytest.mark.parametrize("number", range(len(PAYLOADS)))
def test_no_payload_runs_wherever_it_is_shown(watched: Watched, receiver: Receiver, number: int) -> None:
    payload, session = PAYLOADS[number], f"hostile-{number}"
    events = [json.loads(line) for line in spoilt(payload)]
    receiver.post(session, events[:-20])
    receiver.report(
        session,
        **{"title": payload, "repository": payload, "branch": payload, "host": payload},
        redactions={"2026-11-18": {payload: 1}},
    )
    sink = {"name": payload, "lag_events": 5, "lag_seconds": 5.0, "last_error": payload}
    receiver.report_exporter(
        f"hostile-{number}", version=payload, host=payload, sinks=[sink], quarantined=3, quarantine={payload: 1}
    )
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
    _harmless(page)
    page.keyboard.press("Escape")
    page.locator("dialog").wait_for(state="detached")
    page.locator("a.forget").click()
    page.locator("dialog article.forget").wait_for()
    _harmless(page)
    asked = urlencode({"q": payload})
    below = ("", "?all=1&edge=first", f"?all=1&{asked}", "/waterfall", "/forget")
    for path in ("/", "/feed", f"/?{asked}", "/health", *(f"/sessions/{session}{one}" for one in below)):
        watched.open(path)
        if path.partition("?")[0] in ("/", "/feed", "/health", f"/sessions/{session}"):
            page.locator(".live.on").wait_for()
        _harmless(page)


def _harmless(page: Page) -> None:
    """Nothing has run, and nothing is there that could: no element, attribute or address that is not ours."""
    assert not page.evaluate("window.ran === true")
    assert page.evaluate("document.scripts.length") == 1
    odd = "img, iframe, object, embed, base, script:not([src='/script.js']), [srcdoc], i, b[onmouseover]"
    assert page.evaluate("odd => document.querySelectorAll(odd).length", odd) == 0
    assert page.evaluate(HANDLERS) == []
    assert [one for one in page.evaluate(ADDRESSES) if one and not one.startswith("http://127.0.0.1:")] == []


def test_what_a_browser_runs_at_all_would_be_noticed(watched: Watched) -> None:
    _armed(watched.page)
    page = watched.open("/feed")
    page.evaluate("alert(1)")

    assert page.evaluate("window.ran === true")
    assert watched.complaints == ["error: a payload ran"]
    watched.complaints.clear()
