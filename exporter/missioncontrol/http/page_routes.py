"""Where the pages for people are, and what a person sees when one of them cannot be shown."""

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from exporter.missioncontrol.http.responses import ApiError
from exporter.missioncontrol.pages import event, export, feed, forget, health, page, session, sessions, waterfall

Endpoint = Callable[[Request], Awaitable[Response]]
_FOR_PROGRAMS: Final = ("/api", "/agents", "/metrics", "/healthz", "/readyz")


def _told(endpoint: Endpoint) -> Endpoint:
    """Return the endpoint so that a browser gets its errors as a page; who does not ask for HTML gets JSON."""

    @wraps(endpoint)
    async def told(request: Request) -> Response:
        try:
            return await endpoint(request)
        except ApiError as error:
            if not is_for_a_person(request):
                raise
            return page.error_page(request, error)

    return told


def is_for_a_person(request: Request) -> bool:
    """Tell whether a browser asks for a page to show, and not a program, the script among them."""
    path, accepted = request.url.path, request.headers.get("accept", "")
    is_of_programs = any(path == name or path.startswith(f"{name}/") for name in _FOR_PROGRAMS)
    return "text/html" in accepted and not is_of_programs and not page.is_fragment(request)


def no_such_page(request: Request) -> Response:
    """Return what a person sees at an address that leads nowhere."""
    hint = "The address is incomplete or misspelt, or comes from another version."
    return page.error_page(request, ApiError(404, "not_found", "Page not found.", hint=hint))


_PAGES: Final[dict[str, Endpoint]] = {
    "/": sessions.sessions_page,
    "/feed": feed.feed_page,
    "/health": health.health_page,
    "/sessions/{id}": session.session_page,
    "/sessions/{id}/next": session.next_event,
    "/sessions/{id}/event": event.event_page,
    "/sessions/{id}/forget": forget.forget_page,
    "/sessions/{id}/waterfall": waterfall.waterfall_page,
    "/sessions/{id}/export.{form}": export.export,
}
_FILES: Final = {"style.css": "text/css", "script.js": "text/javascript", "icon.svg": "image/svg+xml"}

_ACTIONS: Final[dict[str, Endpoint]] = {"/sessions/{id}/forget": forget.forget}

ROUTES: Final = (
    *(Route(path, _told(endpoint), methods=["GET"]) for path, endpoint in _PAGES.items()),
    *(Route(path, _told(endpoint), methods=["POST"]) for path, endpoint in _ACTIONS.items()),
    *(Route(f"/{name}", page.give(name, media_type), methods=["GET"]) for name, media_type in _FILES.items()),
)
