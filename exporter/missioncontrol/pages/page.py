"""What every page has: the policy that forbids all that is not ours, parts for the script, and the files it loads."""

from collections.abc import Callable
from importlib.resources import files
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from exporter.missioncontrol.http.responses import ApiError, tagged_answer
from exporter.missioncontrol.pages.rendering import render

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
_HINTS: Final = {
    "unknown_session": "No events of it have been received, or the address is incomplete.",
    "deleted_session": "It was deleted here. The session file of Copilot CLI is not deleted.",
    "expired_session": "The retention settings removed it. The session file of Copilot CLI is not deleted.",
}
"""What helps a person; the error's own hint is for who writes programs."""


def page(request: Request, template: str, *parts: str, **values: object) -> Response:
    """Return a whole page; to the script, which asks for a part of it, only these blocks of its template."""
    content = render(template, *(parts if is_fragment(request) else ()), **values)
    return _answer(request, content.encode("utf-8", "replace"), "text/html")


def error_page(request: Request, error: ApiError) -> Response:
    """Return an error as a page."""
    answer = page(request, "error.html", message=error.message, hint=_HINTS.get(error.kind, error.hint))
    answer.status_code = error.status
    answer.headers["Cache-Control"] = "no-store"
    return answer


def is_fragment(request: Request) -> bool:
    """Tell whether the script asks for a part of the page only."""
    return request.query_params.get("part") == "1"


def static_file(name: str) -> bytes:
    """Return a file that pages load."""
    return files("exporter.missioncontrol.pages").joinpath("static", name).read_bytes()


def give(name: str, media_type: str) -> Callable[[Request], Response]:
    """Return an endpoint that gives a file that pages load."""
    return lambda request: _answer(request, static_file(name), media_type)


def _answer(request: Request, content: bytes, media_type: str) -> Response:
    answer = tagged_answer(request, content, media_type=media_type)
    answer.headers.update(HEADERS)
    return answer
