"""A page that is kept open: it follows through long calls, rewinds and sleep, and keeps the reader's place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.conftest import Watched
from tests.browser.receiver import Receiver, event

if TYPE_CHECKING:
    from playwright.sync_api import Page, expect
else:
    expect = pytest.importorskip("playwright.sync_api").expect

pytestmark = pytest.mark.real
HIDE = """(hidden) => {
  Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
  document.dispatchEvent(new Event("visibilitychange"));
}"""
TOP_OF = "(id) => document.getElementById(id).getBoundingClientRect().top"


def steps(first: int, last: int, agent: str | None = None) -> list[dict[str, Any]]:
    """Rounds of six events each, of which two entries are made."""
    told = []
    fields = {} if agent is None else {"agentId": agent}
    for number in range(first, last):
        at, call = 10 + number * 6, {"toolCallId": f"c{number}", "toolName": "bash"}
        told += [
            event(at, "assistant.turn_start", {"turnId": str(number)}, **fields),
            event(at + 1, "session.usage_record", {"usage": {"inputTokens": 10, "outputTokens": 2}}, **fields),
            event(at + 2, "assistant.message", {"content": "", "messageId": f"m{number}"}, **fields),
            event(at + 3, "tool.execution_start", {**call, "arguments": {"command": f"step {number}"}}, **fields),
            event(at + 4, "tool.execution_complete", {**call, "success": True, "result": {"content": "x"}}, **fields),
            event(at + 5, "assistant.turn_end", {"turnId": str(number)}, **fields),
        ]
    return told


def opened(watched: Watched, path: str) -> Page:
    page = watched.open(path)
    page.locator(".live.on").wait_for()
    return page


def test_the_newest_is_seen_while_a_call_runs_long(watched: Watched, receiver: Receiver) -> None:
    task = {"toolCallId": "task", "toolName": "task", "arguments": {"prompt": "all of it"}}
    receiver.post("long-call", [event(1, "user.message", {"content": "Go"}), event(2, "tool.execution_start", task)])
    receiver.post("long-call", steps(0, 60))
    page = opened(watched, "/sessions/long-call")
    page.keyboard.press("End")

    for number in range(60, 90):
        receiver.post("long-call", steps(number, number + 1))
        page.locator(".entry .line", has_text=f"step {number}").first.wait_for()
    receiver.post("long-call", [event(900, "tool.execution_complete", {"toolCallId": "task", "success": True})])

    expect(page.locator("#e-event-2:not(.running)")).to_have_count(1)
    expect(page.locator(".more.later")).to_have_count(0)
    expect(page.locator(".entry.tool")).to_have_count(91)
    expect(page.locator("#newest")).to_have_count(1)


def test_a_rewind_takes_no_more_than_was_taken_back(watched: Watched, receiver: Receiver) -> None:
    told = [event(1, "user.message", {"content": "Go"}), *steps(0, 150)]
    receiver.post("rewound", told)
    page = opened(watched, "/sessions/rewound")
    for _ in range(6):
        page.evaluate("scrollTo(0, 0)")
        page.mouse.wheel(0, -400)
        page.wait_for_timeout(200)
    page.locator(".more.earlier").wait_for(state="detached")
    loaded = page.locator(".timeline > li").count()
    page.locator("#e-event-193").scroll_into_view_if_needed()
    before = page.evaluate(TOP_OF, "e-event-193")

    receiver.rewind("rewound", [one["id"] for one in told[-36:]])

    page.locator(".entry.mark", has_text="rewound").wait_for()
    assert page.locator(".timeline > li").count() == loaded - 12 + 1
    assert abs(page.evaluate(TOP_OF, "e-event-193") - before) < 5


def test_what_happened_while_nobody_looked_is_there_also_behind_a_link_to_an_event(
    watched: Watched, receiver: Receiver
) -> None:
    receiver.post("slept", [event(1, "user.message", {"content": "Go"}), *steps(0, 3)])
    page = opened(watched, "/sessions/slept?at=event-13#e-event-13")
    page.evaluate(HIDE, True)
    receiver.post("slept", [event(200, "user.message", {"content": "And now this"})])
    page.evaluate(HIDE, False)

    page.locator(".entry.user", has_text="And now this").wait_for()


def test_a_call_that_ends_behind_the_window_has_ended(watched: Watched, receiver: Receiver) -> None:
    task = {"toolCallId": "task", "toolName": "task", "arguments": {"prompt": "all of it"}}
    told = [event(1, "user.message", {"content": "Go"}), event(2, "tool.execution_start", task), *steps(0, 80)]
    receiver.post("joined", [*told, event(900, "tool.execution_complete", {"toolCallId": "task", "success": True})])
    page = opened(watched, "/sessions/joined?edge=first")
    expect(page.locator("#e-event-2 .took")).to_have_count(1)
    expect(page.locator(".entry.running")).to_have_count(0)

    page.keyboard.press("End")
    page.wait_for_url("**/sessions/joined#newest")
    expect(page.locator(".entry.tool", has_text="result of an earlier call")).to_have_count(1)
    assert page.evaluate("innerHeight + scrollY >= document.body.scrollHeight - 160")
    page.evaluate("scrollTo(0, 0)")
    page.mouse.wheel(0, -400)

    page.locator("#e-event-2").wait_for()
    expect(page.locator(".entry.tool", has_text="result of an earlier call")).to_have_count(0)


def test_bars_grow_with_the_interaction_and_stand_on_the_waterfall_s_axis(watched: Watched, receiver: Receiver) -> None:
    receiver.post("bars", [event(1, "user.message", {"content": "Go"}), *steps(0, 1)])
    page = opened(watched, "/sessions/bars")
    page.locator(".waterfall[data-from]").wait_for()
    receiver.post("bars", steps(1, 12))
    page.locator(".entry .line", has_text="step 11").wait_for()
    read = "all => all.map(bar => Number(bar.firstElementChild.getAttribute('x')))"
    page.wait_for_timeout(2000)  # as long as the waterfall rests when it has been drawn
    receiver.post("bars", steps(12, 13))
    page.locator(".waterfall li", has_text="bash").nth(12).wait_for()

    bars = page.locator(".entry.tool .bar").evaluate_all(read)
    spans = page.locator(".waterfall li.execute_tool rect.span").evaluate_all(
        "all => all.map(span => Number(span.getAttribute('x')))"
    )
    assert len(bars) == 13
    assert bars == pytest.approx(spans, abs=0.1)
    page.reload()
    page.locator(".waterfall li", has_text="bash").nth(12).wait_for()
    assert page.locator(".entry.tool .bar").evaluate_all(read) == pytest.approx(bars, abs=0.1)


@pytest.mark.parametrize("way", ["reload", "back"])
def test_the_reader_s_place_is_kept(watched: Watched, receiver: Receiver, way: str) -> None:
    receiver.post(f"place-{way}", [event(1, "user.message", {"content": "Go"}), *steps(0, 300)])
    page = opened(watched, f"/sessions/place-{way}?edge=first")
    page.locator("#e-event-313").scroll_into_view_if_needed()
    page.wait_for_timeout(300)
    before = page.evaluate(TOP_OF, "e-event-313")

    if way == "reload":
        page.reload()
    else:
        page.keyboard.press("2")
        page.wait_for_url("**/feed")
        page.go_back()
    page.locator(".live.on").wait_for()
    page.wait_for_timeout(500)

    assert abs(page.evaluate(TOP_OF, "e-event-313") - before) < 10


def test_an_entry_that_was_gone_to_is_there_after_a_reload(watched: Watched, receiver: Receiver) -> None:
    receiver.post("gone-to", [event(1, "user.message", {"content": "Go"}), *steps(0, 300)])
    page = opened(watched, "/sessions/gone-to?edge=first")
    page.keyboard.press("j")
    page.keyboard.press("j")
    at = page.locator(".entry.here").get_attribute("id")
    page.evaluate("history.replaceState(null, '', location.pathname + location.hash)")

    page.goto("about:blank")
    page.go_back()

    expect(page.locator(".entry.here")).to_have_attribute("id", str(at))


def test_a_link_to_an_event_keeps_the_agent_that_is_looked_at(watched: Watched, receiver: Receiver) -> None:
    started = event(2, "subagent.started", {"toolCallId": "t", "agentName": "helper"}, agentId="helper")
    receiver.post("scoped", [event(1, "user.message", {"content": "Go"}), started, *steps(0, 2, agent="helper")])
    page = opened(watched, "/sessions/scoped?agent=helper")
    page.locator("#e-event-13 .at").click()
    assert "agent=helper" in page.url
    assert "at=event-13" in page.url
    own, other = {"content": "the helper speaks"}, {"content": "the main agent speaks"}
    receiver.post(
        "scoped", [event(300, "assistant.message", other), event(301, "assistant.message", own, agentId="helper")]
    )

    page.locator("#e-event-301").wait_for()
    expect(page.locator("#e-event-300")).to_have_count(0)


def test_no_message_of_an_earlier_search_stays(watched: Watched) -> None:
    page = opened(watched, "/")
    rows = page.locator("tbody tr").count()
    page.keyboard.press("/")
    page.keyboard.type("qqqq", delay=30)
    expect(page.locator("[data-part=list]")).to_contain_text("No sessions match")
    for _ in range(4):
        page.keyboard.press("Backspace")

    expect(page.locator("tbody tr")).to_have_count(rows)
    expect(page.locator("[data-part=list]")).not_to_contain_text("No sessions match")
    expect(page.locator("[data-part=list]")).not_to_contain_text("No events match")


def test_escape_empties_the_search_and_shows_all_again(watched: Watched) -> None:
    page = opened(watched, "/")
    rows = page.locator("tbody tr").count()
    page.keyboard.press("/")
    page.keyboard.type("qqqq", delay=30)
    expect(page.locator("tbody tr")).to_have_count(0)
    page.keyboard.press("Escape")

    expect(page.locator("tbody tr")).to_have_count(rows)
    assert "q=" not in page.url


def test_the_feed_stays_where_it_is_while_more_comes(watched: Watched, receiver: Receiver) -> None:
    def note(number: int) -> dict[str, Any]:
        data = {"content": f"note {number}", "kind": {"type": "agent_completed", "status": "completed"}}
        return event(number, "system.notification", data)

    receiver.post("told", [note(number) for number in range(40)])
    page = opened(watched, "/feed")
    page.locator(".feed li", has_text="note 14").scroll_into_view_if_needed()
    page.wait_for_timeout(300)
    top = "all => all.find(li => li.innerText.includes('note 14')).getBoundingClientRect().top"
    before = page.locator(".feed li").evaluate_all(top)
    receiver.post("told", [note(number) for number in range(40, 44)])

    page.locator(".feed li", has_text="note 43").wait_for()
    assert abs(page.locator(".feed li").evaluate_all(top) - before) < 5


def test_what_an_exporter_reports_of_itself_is_there_at_once(watched: Watched, receiver: Receiver) -> None:
    page = opened(watched, "/health")
    receiver.report_exporter("new-one", version="9.9.9", host="just-now", sinks=[], quarantined=0)

    page.locator("table", has_text="just-now").wait_for(timeout=3000)
