"""A person at a browser: sees, filters, searches, follows, jumps, with a mouse or with keys only, wide or narrow."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.conftest import Watched
from tests.browser.pictures import BYTES_MAX, PICTURES, Picture, difference, take
from tests.browser.receiver import Receiver, event, fill

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, ViewportSize, expect
else:
    expect = pytest.importorskip("playwright.sync_api").expect

pytestmark = pytest.mark.real
MISSING = "/sessions/nobody"
TOLD = "2026-11-18T09:00:00.000Z"
PATHS = (
    "/",
    "/?q=StopIteration",
    "/?state=idle",
    "/feed",
    "/health",
    "/fleet",
    "/shares",
    "/audit",
    "/sessions/demo",
    "/sessions/demo?all=1&q=tide",
    "/sessions/waits",
    "/sessions/demo/waterfall",
    "/sessions/demo/forget",
    "/enter",
    MISSING,
)
DIFFERENCE_MAX = 0.03
"""A page without its style, or with nothing on it, differs by more; other fonts and times by less."""


def settle(page: Page, path: str) -> None:
    """Wait until nothing more comes by itself: what is live has been fetched, what is drawn is there, nothing moves."""
    live = ("/", "/feed", "/health", "/sessions/demo", "/sessions/waits", "/sessions/wordy")
    if path.split("?", maxsplit=1)[0] in live:
        page.locator(".live.on").wait_for()
    if path.startswith(("/sessions/demo", "/sessions/waits")) and not path.endswith("/forget"):
        page.locator(".waterfall").first.wait_for()
    endless = "(one) => one.effect.getComputedTiming().endTime === Infinity"
    page.wait_for_function(f"document.getAnimations().every({endless})")


def test_states_are_told_in_words_and_filter_the_list(watched: Watched) -> None:
    page = watched.open("/")

    for state, count in {"needs attention": 1, "working": 1, "crashed": 1, "ended": 4}.items():
        page.get_by_role("link", name=re.compile(f"^{state} ")).click()
        page.wait_for_url(f"**/?state={state.replace(' ', '_')}")
        expect(page.locator("tbody tr")).to_have_count(count)
        assert set(page.locator("tbody tr .state").all_inner_texts()) == {state}
    page.get_by_role("link", name=re.compile("needs attention")).click()
    expect(page.locator("tbody tr")).to_contain_text("harbour lights")


def test_a_search_narrows_the_list_while_one_types(paced: Watched) -> None:
    page = paced.open("/")
    page.keyboard.press("/")
    page.keyboard.type("lighthouse tide", delay=5)

    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page.locator("tbody tr")).to_contain_text("tide table")
    assert page.url.endswith("?q=lighthouse+tide")
    counts = page.locator("nav.filters a b").all_inner_texts()
    assert counts[0] == "1"  # what the words leave, not what there is
    assert sum(map(int, counts[1:])) == 1
    page.get_by_role("searchbox").fill("StopIteration")
    page.locator(".found li a", has_text="StopIteration").first.click()
    page.wait_for_url("**/sessions/demo?at=*")
    expect(page.locator(".entry.here")).to_have_count(1)


def test_what_a_search_did_not_find_is_not_said_of_the_next_one(watched: Watched) -> None:
    page = watched.open("/?q=nowhere-at-all")
    expect(page.locator("main")).to_contain_text("No sessions match.")
    expect(page.locator("main")).to_contain_text("No events match “nowhere-at-all”.")
    page.locator(".live.on").wait_for()
    page.get_by_role("searchbox").fill('"')
    expect(page.locator("main")).to_contain_text('No searchable words in “"”')
    expect(page.locator("main")).not_to_contain_text("No events match")
    page.get_by_role("searchbox").fill("tide")

    page.locator(".found li a").first.wait_for()
    for said in ("No sessions match.", "No events match", "No searchable words"):
        expect(page.locator("main")).not_to_contain_text(said)


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
    expect(page.locator(".timeline > li")).to_have_count(11)
    assert sorted(took)[len(took) * 9 // 10] < 0.8, took


@pytest.mark.parametrize("width", [1360, 390])
def test_a_day_stands_above_its_first_entry_and_stays_while_others_arrive(
    watched: Watched, receiver: Receiver, width: int
) -> None:
    midnight, session = 15 * 3600, f"nights-{width}"
    told = [event(midnight - 5, "user.message", {"content": "Look"})]
    told += [event(midnight + number, "assistant.message", {"content": f"buoy {number}"}) for number in range(9)]
    receiver.post(session, told)
    watched.page.set_viewport_size({"width": width, "height": 900})
    page = watched.open(f"/sessions/{session}")
    page.locator(".live.on").wait_for()
    days = page.locator(".timeline > li > h2.day")
    expect(days).to_have_count(2)
    expect(page.locator(f"#e-event-{midnight} > .day")).to_have_count(1)
    receiver.post(session, [event(midnight + 10, "assistant.message", {"content": "buoy 10"})])
    page.locator(f"#e-event-{midnight + 10}").wait_for()

    expect(days).to_have_count(2)
    below = """all => all.every((day) => {
      const bottom = day.getBoundingClientRect().bottom, others = [...day.parentElement.children].slice(1);
      return others.every((other) => bottom <= other.getBoundingClientRect().top + 1);
    })"""
    assert days.evaluate_all(below)


def test_a_folded_call_stays_open_while_others_arrive(paced: Watched, receiver: Receiver) -> None:
    call = {"toolCallId": "x", "toolName": "view", "arguments": {"path": "buoys.py"}}
    receiver.post("open", [event(1, "user.message", {"content": "Look"}), event(2, "tool.execution_start", call)])
    page = paced.open("/sessions/open")
    page.locator(".live.on").wait_for()
    page.locator("#e-event-2 summary").click()
    expect(page.locator("#e-event-2 details")).to_have_attribute("open", "")
    receiver.post("open", [event(3, "tool.execution_complete", {"toolCallId": "x", "result": {"content": "buoy = 1"}})])

    expect(page.locator("#e-event-2 pre.result")).to_be_visible()
    assert page.locator("#e-event-2 details").get_attribute("open") is not None


def test_the_end_of_a_call_further_up_is_no_entry_of_its_own(watched: Watched, receiver: Receiver) -> None:
    call = {"toolCallId": "x", "toolName": "task", "arguments": {"prompt": "count them"}}
    inside = [event(number, "assistant.message", {"content": f"buoy {number}"}) for number in range(3, 20)]
    receiver.post("task", [event(1, "user.message", {"content": "Look"}), event(2, "tool.execution_start", call)])
    receiver.post("task", inside)
    page = watched.open("/sessions/task")
    page.locator(".live.on").wait_for()
    receiver.post("task", [event(20, "tool.execution_complete", {"toolCallId": "x", "result": {"content": "17"}})])
    expect(page.locator("#e-event-2 pre.result")).to_have_count(1)

    receiver.post("task", [event(21, "assistant.message", {"content": "there are 17"})])

    expect(page.locator("#e-event-21")).to_have_count(1)
    expect(page.locator(".entry.tool")).to_have_count(1)


def test_what_can_be_done_with_a_session_stands_in_one_line(watched: Watched) -> None:
    page = watched.open("/sessions/demo")
    page.set_viewport_size({"width": 1300, "height": 900})

    tops = page.locator(".bar-of-actions .button").evaluate_all("all => all.map((one) => one.offsetTop)")

    assert max(tops) - min(tops) <= 4, tops


def test_the_upload_lag_of_a_session_is_not_cut_off(watched: Watched, receiver: Receiver) -> None:
    receiver.post("lagging", [event(1, "user.message", {"content": "Wait"})])
    receiver.report("lagging", host="far")
    receiver.report_exporter(
        "f4f4", version="0.1.0", host="far", sinks=[], behind={"lagging": {"lag_events": 1, "lag_seconds": 0.017}}
    )
    cell = watched.open("/").locator('tr[data-key="lagging"] td[data-name="Upload lag"]')

    expect(cell).to_contain_text("17 ms · 1 event as of")
    assert cell.evaluate("cell => cell.scrollWidth <= cell.clientWidth")


def test_what_a_sink_has_is_said_only_as_far_as_it_is_confirmed(watched: Watched, receiver: Receiver) -> None:
    sink = {"name": "team", "lag_events": 0, "lag_seconds": 0, "unconfirmed": 2}

    def told(**facts: object) -> str:
        receiver.report_exporter("words", host="words", sinks=[sink | facts])
        row = watched.open("/health").locator("tr").filter(has=watched.page.get_by_role("rowheader", name="words"))
        return row.locator("li").inner_text()

    assert told() == "team accepted, not confirmed"
    assert re.fullmatch(r"team accepted, not confirmed since \S.*", told(confirmed_at=TOLD))
    assert told(unconfirmed=0, confirmed_at=TOLD) == "team up to date"


@pytest.mark.parametrize("width", [1360, 390])
def test_no_label_of_a_waterfall_lies_on_a_bar_or_is_without_its_time(watched: Watched, width: int) -> None:
    page = watched.open("/sessions/demo")
    page.set_viewport_size({"width": width, "height": 900})
    page.locator(".waterfall li").nth(5).wait_for()

    apart = """rows => rows.every((row) => {
      const parts = [".name", ".name small", "svg"].map((part) => row.querySelector(part));
      const [name, time, bar] = parts.map((part) => part.getBoundingClientRect());
      const apart = name.right <= bar.left + 1 || name.bottom <= bar.top + 1;
      return apart && time.right <= name.right + 1 && time.width > 0;
    })"""
    assert page.locator(".waterfall li").evaluate_all(apart)


def test_the_line_under_a_turn_is_on_the_axis_of_the_waterfall(watched: Watched) -> None:
    page = watched.open("/sessions/demo")
    page.locator(".waterfall li").nth(5).wait_for()

    ends = "box => [box.getBoundingClientRect().left, box.getBoundingClientRect().right]"
    axis = page.locator(".waterfall li svg").first.evaluate(ends)
    assert page.locator(".entry.turn > .bar").first.evaluate(ends) == pytest.approx(axis, abs=1.5)


def test_text_appears_while_it_is_written(paced: Watched, receiver: Receiver) -> None:
    receiver.post("typing", [event(1, "user.message", {"content": "Tell me"})])
    page = paced.open("/sessions/typing")
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
    expect(page.locator("tbody tr")).to_have_count(0)
    receiver.post("lagoon", [event(1, "user.message", {"content": "Drain the lagoon"})])

    page.locator("tbody tr", has_text="Drain the lagoon").wait_for()
    receiver.post("lagoon", [event(2, "session.shutdown")])
    page.locator("tbody tr .state.ended").wait_for()


def test_the_tab_says_that_somebody_is_waited_for(watched: Watched, receiver: Receiver) -> None:
    def count() -> int:
        return int(page.locator(".filters a.needs_attention b").inner_text())

    page = watched.open("/")
    page.locator(".live.on").wait_for()
    before = count()
    expect(page).to_have_title(f"({before}) Sessions · Mission Control")
    asks = event(2, "permission.requested", {"requestId": "r", "permissionRequest": {"kind": "shell"}})
    receiver.post("asking", [event(1, "user.message", {"content": "Sink the barge"}), asks])
    expect(page).to_have_title(f"({before + 1}) Sessions · Mission Control")
    page = watched.open("/sessions/asking")
    expect(page).to_have_title("(!) Sink the barge · Mission Control")
    page.locator(".live.on").wait_for()
    receiver.post("asking", [event(3, "permission.completed", {"requestId": "r", "result": {"kind": "approved"}})])
    expect(page).to_have_title("Sink the barge · Mission Control")


def test_a_sub_agent_scopes_the_timeline(watched: Watched) -> None:
    page = watched.open("/sessions/demo")
    whole = page.locator(".timeline > li").count()
    page.locator(".agents a", has_text="tide-historian").click()

    page.wait_for_url("**?agent=*")
    scoped = page.locator(".timeline > li")
    expect(scoped).not_to_have_count(0)
    assert scoped.count() < whole
    expect(page.locator(".timeline > li.child")).to_have_count(scoped.count())


def test_any_event_opens_as_json_and_keeps_its_address(paced: Watched) -> None:
    page = paced.open("/sessions/demo")
    entry = page.locator(".entry.tool").first
    entry.hover()
    entry.locator(".raw").first.click()
    page.locator("dialog pre", has_text='"toolCallId"').wait_for()
    page.keyboard.press("Escape")
    page.locator("dialog").wait_for(state="detached")
    entry.locator(".at").click()

    expect(page).to_have_url(re.compile(r"\?at="))
    page.reload()
    expect(page.locator(".entry.here")).to_have_count(1)


def test_keys_jump_to_errors_and_notifications(paced: Watched) -> None:
    page = paced.open("/sessions/demo")
    here = page.locator(".entry.here")
    page.locator(".live.on").wait_for()
    page.keyboard.press("e")
    expect(here).to_contain_text("exit 1")
    expect(here.locator("details").first).to_have_attribute("open", "")
    for key, words in (("e", "shell finished"), ("E", "FAKE_NOW"), ("n", "agent is idle"), ("N", "instructions found")):
        page.keyboard.press(key)
        expect(here).to_contain_text(words)
    page.keyboard.press("?")
    expect(page.locator("dialog")).to_contain_text("next notification")


def test_the_next_error_goes_on_from_where_one_is_while_entries_renew(paced: Watched, receiver: Receiver) -> None:
    def call(number: int) -> dict[str, Any]:
        return event(number, "tool.execution_start", {"toolCallId": f"c{number}", "toolName": "bash"})

    def failed(number: int) -> dict[str, Any]:
        return event(number + 50, "tool.execution_complete", {"toolCallId": f"c{number}", "success": False})

    receiver.post("renew", [call(1), failed(1), call(2), failed(2), call(3)])
    page = paced.open("/sessions/renew")
    page.locator(".live.on").wait_for()
    here = page.locator(".entry.here")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(here).to_have_id("e-event-3")
    receiver.post("renew", [failed(3), call(4), failed(4)])
    expect(page.locator("#e-event-3.error.here")).to_have_count(1)
    page.locator("#e-event-4.error").wait_for()
    page.keyboard.press("e")
    expect(here).to_have_id("e-event-4")


def test_everything_can_be_reached_with_the_keyboard_alone(paced: Watched) -> None:
    page = paced.open("/?state=needs_attention")
    page.locator(".live.on").wait_for()
    focused = "document.activeElement.textContent.trim() || document.activeElement.name"
    reached: list[str] = []
    for _ in range(40):
        page.keyboard.press("Tab")
        reached.append(str(page.evaluate(focused)))
        if "harbour lights" in reached[-1]:
            break
    assert reached[0] == "Skip to content"
    assert {"Feed", "Redaction & health", "q", "Search"} <= set(reached)
    assert "harbour lights" in reached[-1]
    page.keyboard.press("Enter")
    page.wait_for_url("**/sessions/waits")
    page.locator(".live.on").wait_for()
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(page.locator(".entry.here")).to_be_focused()
    page.keyboard.press("2")
    page.wait_for_url("**/feed")
    expect(page.locator("main")).to_contain_text("permission")


def test_focus_stays_where_it_is_while_a_list_renews(paced: Watched, receiver: Receiver) -> None:
    page = paced.open("/")
    page.locator(".live.on").wait_for()
    page.get_by_role("link", name=re.compile("^working ")).focus()
    receiver.post("renewing", [event(1, "user.message", {"content": "Dredge the channel"})])
    page.locator("tbody tr", has_text="Dredge the channel").wait_for()

    expect(page.get_by_role("link", name=re.compile("^working "))).to_be_focused()
    receiver.post("renewing", [event(2, "session.shutdown")])
    page.locator("tbody tr", has_text="Dredge the channel").locator(".state.ended").wait_for()
    expect(page.get_by_role("link", name=re.compile("^working "))).to_be_focused()


def test_the_waterfall_leads_to_the_events(watched: Watched) -> None:
    page = watched.open("/sessions/demo")
    page.locator(".waterfall li a", has_text="execute_tool bash").first.click()

    expect(page.locator(".entry.here")).to_contain_text("make test-all")


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


@pytest.fixture(scope="module")
def wordy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Receiver]:
    """A receiver in which sessions have words in their titles and messages that are wider than a narrow screen."""
    started = Receiver(tmp_path_factory.mktemp("wordy"))
    fill(started)
    word = "Lighthouse" * 12
    content = {"kind": {"type": word, "status": word}, "content": word}
    told = [event(1, "user.message", {"content": word}), event(2, "system.notification", content)]
    for name in ("demo", "waits", "wordy"):
        started.post(name, told if name == "wordy" else [])
        started.report(name, title=f"{word} {name}", host=word, repository=word, branch=word)
    yield started
    started.close()


@pytest.mark.parametrize("path", PATHS)
def test_nothing_is_cut_off_on_a_narrow_screen(watched: Watched, path: str) -> None:
    assert fits(watched, path, 360)


@pytest.mark.parametrize("path", [*PATHS, "/sessions/wordy?all=1", "/feed?type=" + "x" * 90, MISSING + "x" * 90])
def test_long_words_are_broken_on_a_narrow_screen(watched: Watched, wordy: Receiver, path: str) -> None:
    watched.origin = wordy.url

    assert fits(watched, path, 390)


def fits(watched: Watched, path: str, width: int) -> bool:
    """Tell whether a page is no wider than the screen."""
    watched.page.set_viewport_size({"width": width, "height": 740})
    page = watched.open(path)
    settle(page, path)
    if path.startswith(MISSING):
        assert "404" in watched.complaints.pop()
    return bool(page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"))


@pytest.mark.parametrize(("scheme", "width"), [("light", 1360), ("dark", 1360), ("dark", 390)])
@pytest.mark.parametrize("path", PATHS)
def test_axe_finds_nothing_serious(browser: Browser, receiver: Receiver, path: str, scheme: str, width: int) -> None:
    from tests.browser.axe import findings

    # Our policy forbids foreign scripts, and that is what axe is here.
    size: ViewportSize = {"width": width, "height": 800}
    context = browser.new_context(color_scheme="dark" if scheme == "dark" else "light", bypass_csp=True, viewport=size)
    page = context.new_page()
    page.goto(receiver.url + path)
    settle(page, path)

    assert findings(page) == []
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("opens", ["?", "r", ".forget"])
def test_axe_finds_nothing_serious_in_a_window(browser: Browser, receiver: Receiver, opens: str, scheme: str) -> None:
    from tests.browser.axe import findings

    context = browser.new_context(color_scheme="dark" if scheme == "dark" else "light", bypass_csp=True)
    page = context.new_page()
    page.goto(f"{receiver.url}/sessions/demo")
    settle(page, "/sessions/demo")
    page.keyboard.press("j")
    page.locator(opens).click() if opens.startswith(".") else page.keyboard.press(opens)
    page.locator("dialog[open]").wait_for()

    assert findings(page) == []
    context.close()


@pytest.mark.parametrize("path", [path for path in PATHS if path != MISSING])
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


@pytest.mark.parametrize("width", [1360, 390])
@pytest.mark.parametrize("path", ["/", "/feed", "/health", "/sessions/demo", "/?q=StopIteration"])
def test_a_time_that_says_its_zone_has_its_place(browser: Browser, receiver: Receiver, path: str, width: int) -> None:
    context = browser.new_context(java_script_enabled=False, viewport={"width": width, "height": 900})
    page = context.new_page()
    page.goto(receiver.url + path)

    assert "UTC" in page.inner_text("main")
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    told = """times => times.filter((time) => {
      const text = document.createRange();
      text.selectNodeContents(time);
      const place = text.getBoundingClientRect(), next = time.nextElementSibling?.getBoundingClientRect();
      return next && next.left < place.right - 1 && next.top < place.bottom - 1;
    }).map((time) => time.textContent)"""
    assert page.locator("main time").evaluate_all(told) == []
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
