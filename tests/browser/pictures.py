"""The pictures in the documentation: `python -m tests.browser.pictures` takes them, and a test compares them."""

from __future__ import annotations

import base64
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tests.browser.receiver import Receiver, fill

if TYPE_CHECKING:
    from playwright.sync_api import Browser

DIRECTORY = Path(__file__).resolve().parents[2] / "docs/pictures"
BYTES_MAX = 200_000
# Nothing is fetched any more, nothing moves, and what was done last has been painted.
SETTLED = """async () => {
  const fetched = () => performance.getEntriesByType("resource").length;
  const before = fetched();
  await new Promise((done) => setTimeout(done, 250));
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  return before === fetched() && document.getAnimations().length === 0;
}"""


@dataclass(frozen=True, slots=True)
class Picture:
    """One picture: of which page, how wide and high, light or dark, after which keys."""

    name: str
    path: str
    width: int = 1360
    height: int = 860
    scheme: Literal["light", "dark"] = "light"
    keys: tuple[str, ...] = ()

    @property
    def file(self) -> Path:
        """Where it is kept."""
        return DIRECTORY / f"mission-control-{self.name}.png"


PICTURES = (
    Picture("sessions", "/"),
    Picture("session", "/sessions/demo", height=1000),
    Picture("session-dark", "/sessions/demo", height=1000, scheme="dark", keys=("e",)),
    Picture("feed", "/feed", height=620),
    Picture("health", "/health", height=900),
    Picture("narrow", "/sessions/demo", width=390, height=844, scheme="dark", keys=("n",)),
)


def take(browser: Browser, origin: str, picture: Picture) -> bytes:
    """Return the picture as it is now."""
    context = browser.new_context(
        viewport={"width": picture.width, "height": picture.height},
        color_scheme=picture.scheme,
        reduced_motion="reduce",
        timezone_id="UTC",
        locale="en-GB",
    )
    try:
        page = context.new_page()
        page.goto(origin + picture.path)
        page.locator(".live.on").wait_for()
        if picture.path.startswith("/sessions/"):
            page.locator(".waterfall").first.wait_for()
        for key in picture.keys:
            page.keyboard.press(key)
        if picture.keys:
            page.locator(".entry.here").wait_for()
        page.wait_for_function(SETTLED)
        return page.screenshot()
    finally:
        context.close()


_COMPARE = """async ([one, two]) => {
  const grey = async (data) => {
    const image = new Image();
    image.src = "data:image/png;base64," + data;
    await image.decode();
    const canvas = document.createElement("canvas");
    canvas.width = 40; canvas.height = 30;
    const drawing = canvas.getContext("2d");
    drawing.drawImage(image, 0, 0, 40, 30);
    const seen = drawing.getImageData(0, 0, 40, 30).data;
    return Array.from({length: 1200}, (_, at) => (seen[at * 4] + seen[at * 4 + 1] + seen[at * 4 + 2]) / 765);
  };
  const [a, b] = [await grey(one), await grey(two)];
  return a.reduce((sum, value, at) => sum + Math.abs(value - b[at]), 0) / a.length;
}"""


def difference(browser: Browser, one: bytes, two: bytes) -> float:
    """Return how much two pictures differ when seen from afar, from 0 to 1."""
    page = browser.new_page()
    try:
        coded = [base64.b64encode(picture).decode() for picture in (one, two)]
        return float(page.evaluate(_COMPARE, coded))
    finally:
        page.close()


def main() -> int:
    """Take all pictures."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as directory, sync_playwright() as started:
        browser = started.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        receiver = Receiver(Path(directory))
        fill(receiver)
        DIRECTORY.mkdir(parents=True, exist_ok=True)
        for picture in PICTURES:
            picture.file.write_bytes(take(browser, receiver.url, picture))
            print(picture.file.name, picture.file.stat().st_size)
        receiver.close()
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
