"""How long it takes until what the CLI has appended to its file can be seen on the page that somebody looks at."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser.cli import SESSION, Cli
from tests.browser.conftest import Watched
from tests.browser.program import environment, running

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext

pytestmark = pytest.mark.real
EVENTS = 60
VISIBLE_MILLISECONDS_MAX = 400
# When each entry was first painted, by the clock that the test has too.
WATCH = """() => {
  window.seen = {};
  const look = () => requestAnimationFrame(() => requestAnimationFrame((now) => {
    const at = performance.timeOrigin + now;
    for (const one of document.querySelectorAll(".timeline > li[id]")) window.seen[one.id] ??= at;
  }));
  new MutationObserver(look).observe(document.querySelector("main"), { childList: true, subtree: true });
}"""


@pytest.mark.timeout(180)
def test_what_is_appended_to_the_file_is_seen_soon(tmp_path: Path, context: BrowserContext) -> None:
    cli = Cli(tmp_path)
    cli.write("session.start", selectedModel="m", context={"cwd": "/srv"})
    cli.write("user.message", content="Count to sixty")
    took: list[float] = []
    with running(environment(tmp_path), "up", "--no-open") as address:
        watched = Watched(context.new_page(), address.rstrip("/")).watch()
        page = watched.open(f"/sessions/{SESSION}")
        page.locator(".entry.user").wait_for()
        page.locator(".live.on").wait_for()
        page.evaluate(WATCH)
        for number in range(EVENTS):
            appended = time.time()
            id = cli.write("assistant.message", messageId=f"m{number}", content=f"{number}")
            page.wait_for_function("id => window.seen[id]", arg=f"e-{id}")
            took.append(page.evaluate("id => window.seen[id]", f"e-{id}") - appended * 1000)
    p50, p95 = (sorted(took)[EVENTS * part // 100] for part in (50, 95))
    print(f"appended to the file → seen: p50 {p50:.0f} ms, p95 {p95:.0f} ms")

    assert min(took) > 0
    assert p95 <= VISIBLE_MILLISECONDS_MAX
    assert watched.complaints == []
