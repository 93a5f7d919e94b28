"""What every page has: the frame, the policy that forbids all that is not ours, and the three files that it loads."""

from importlib.resources import files
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from exporter.missioncontrol.http.responses import ApiError, tagged_answer
from exporter.missioncontrol.pages.markup import escape

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self';"
    " form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    # With "no-referrer" a browser hides from us that a form is ours: its Origin would be "null".
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
_PLACES: Final = {"/": "Sessions", "/feed": "Feed", "/health": "Redaction & health"}
_HINTS: Final = {
    "unknown_session": "Nothing of it has arrived here, or its address is cut short.",
    "deleted_session": "Somebody had it forgotten. Its file is still where Copilot CLI keeps it.",
    "expired_session": "It was older, or all took more space, than the settings keep. The CLI's file is its own.",
}
"""What helps a person; the error's own hint is for who writes programs."""
_ICON: Final = (
    b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><rect width="16" height="16" rx="4" fill="#2457c5"/>'
    b'<path d="M3 8h2.5l1.5-4 2.5 8L11 8h2" fill="none" stroke="#fff" stroke-width="1.6" stroke-linejoin="round"'
    b' stroke-linecap="round"/></svg>'
)


def page(request: Request, title: str, content: str, *, here: str = "", body: str = "") -> Response:
    """Return a whole page; `here` is the address of the part it belongs to, `body` more attributes of the body."""
    links = "".join(
        f'<a href="{path}"{" aria-current=page" if path == here else ""}>{escape(name)}</a>'
        for path, name in _PLACES.items()
    )
    document = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta name="color-scheme" content="light dark"><title>{escape(title)} · Mission Control</title>'
        '<link rel="icon" href="/icon.svg"><link rel="stylesheet" href="/style.css"><script src="/script.js"></script>'
        f"</head><body{body}>"
        '<a class="skip" href="#main">Skip to content</a><header class="top"><a class="brand" href="/">Mission Control'
        f'</a><nav aria-label="Pages">{links}</nav><span class="live" role="status"></span></header>'
        f'<main id="main" tabindex="-1">{content}</main></body></html>'
    )
    return _html(request, document)


def error_page(request: Request, error: ApiError) -> Response:
    """Return an error as a page."""
    hint = _HINTS.get(error.kind, error.hint)
    content = f'<h1>{escape(error.message)}</h1><p>{escape(hint)}</p><p><a href="/">All sessions</a></p>'
    answer = page(request, error.message, content)
    answer.status_code = error.status
    answer.headers["Cache-Control"] = "no-store"
    return answer


def fragment(request: Request, content: str) -> Response:
    """Return a part of a page, for the script to put in its place."""
    return _html(request, content)


def is_fragment(request: Request) -> bool:
    """Tell whether the script asks for a part of the page only."""
    return request.query_params.get("part") == "1"


def _html(request: Request, content: str) -> Response:
    answer = tagged_answer(request, content.encode("utf-8", "replace"), media_type="text/html")
    answer.headers.update(HEADERS)
    return answer


def more(path: str, words: str) -> str:
    """Return a link to what follows; `path` is ready for an attribute."""
    return f'<p class="more"><a class="button" href="{path}">{escape(words)}</a></p>'


async def style(request: Request) -> Response:
    """Give the style sheet."""
    return _asset(request, style_sheet(), "text/css")


async def script(request: Request) -> Response:
    """Give the script."""
    return _asset(request, script_file(), "text/javascript")


async def icon(request: Request) -> Response:
    """Give the picture for the tab."""
    return _asset(request, _ICON, "image/svg+xml")


def style_sheet() -> bytes:
    """Return the style sheet, which exported pages hold too."""
    return files("exporter.missioncontrol.pages").joinpath("static/style.css").read_bytes()


def script_file() -> bytes:
    """Return the script."""
    return files("exporter.missioncontrol.pages").joinpath("static/script.js").read_bytes()


def _asset(request: Request, content: bytes, media_type: str) -> Response:
    answer = tagged_answer(request, content, media_type=media_type)
    answer.headers.update(HEADERS)
    return answer
