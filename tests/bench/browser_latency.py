"""How long an event takes from the append to its file until a person sees it, through the whole program.

`exporter up` follows the file, redacts, stores and tells the page; Chromium shows the session. An event counts as seen
when the browser has drawn a frame with its text in it. Both ends read the same clock.
"""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from tests.bench import measure
from tests.bench.conversations import Teller
from tests.bench.first_run import page_port
from tests.bench.product import home
from tests.bench.report import Row

if TYPE_CHECKING:
    from playwright.sync_api import Page

P95_MAX_MS = 400
EVENTS_BEFORE = 200
_GAP_SECONDS = (0.05, 0.6)
_SEEN_SECONDS_MAX = 30
_SETTLE_SECONDS = 1.5
_WATCH = """() => {
  window.seen = {};
  const look = () => {
    scrollTo(0, document.body.scrollHeight);
    for (const found of document.body.innerText.matchAll(/seen-(\\d+)-/g)) window.seen[found[1]] ??= Date.now();
    requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
}"""


def rows(events: int) -> list[Row]:
    """One row; it says so where there is no browser."""
    chromium = shutil.which("chromium")
    if chromium is None:
        raise RuntimeError("no Chromium on this machine")
    taken = _taken(chromium, events)
    p95 = measure.percentile(taken, 0.95)
    return [
        Row(
            "append → visible in the browser, p95 (p50, largest)",
            f"≤ {P95_MAX_MS} ms",
            f"{p95:.0f} ({measure.percentile(taken, 0.5):.0f}, {max(taken):.0f}) ms",
            p95 <= P95_MAX_MS,
            {"p95_ms": round(p95), "max_ms": round(max(taken)), "events": len(taken)},
        )
    ]


def _taken(chromium: str, events: int) -> list[float]:
    from playwright.sync_api import sync_playwright

    teller, pauses = Teller(77), random.Random(77)
    told = [teller.start()]
    while len(told) < EVENTS_BEFORE:
        told.extend(teller.interaction())
    with home() as place, sync_playwright() as playwright:
        path = place.session_path(teller.session_id)
        path.write_bytes(b"".join(told))
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        with place.running("up", "--no-open") as program:
            url = f"http://127.0.0.1:{page_port(place, program)}/sessions/{teller.session_id}"
            page = browser.new_page(viewport={"width": 1360, "height": 900})
            _until(page, lambda: (answer := page.goto(url)) is not None and answer.ok)
            page.wait_for_timeout(_SETTLE_SECONDS * 1000)
            page.evaluate(_WATCH)
            appended: dict[int, float] = {}
            for number in range(events):
                appended[number] = _append(path, teller, number)
                page.wait_for_timeout(pauses.uniform(*_GAP_SECONDS) * 1000)
            _until(page, lambda: len(page.evaluate("window.seen")) >= events)
            seen = {int(number): float(at) for number, at in page.evaluate("window.seen").items()}
        browser.close()
    return [seen[number] - at for number, at in appended.items()]


def _until(page: Page, holds: Callable[[], bool]) -> None:
    """Wait with the browser going on; a page of ours lets nobody evaluate a text, so playwright cannot wait itself."""
    end = time.monotonic() + _SEEN_SECONDS_MAX
    while not holds():
        if time.monotonic() > end:
            raise TimeoutError(f"the browser: not within {_SEEN_SECONDS_MAX} s")
        page.wait_for_timeout(50)


def _append(path: Path, teller: Teller, number: int) -> float:
    """Append a message as the CLI would; returns when, in milliseconds of the clock that browsers have."""
    line = teller.answer(f"seen-{number}- " + "some more words of an answer " * 5)
    at = time.time() * 1000
    with path.open("ab") as file:
        file.write(line)
    return at
