"""The receiver as one ASGI application; the tests of uploaders use it too, so that the two cannot drift."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from typing import Final, Unpack

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from exporter.core.events.redaction import RedactEvent
from exporter.core.names import STORE_HEADER
from exporter.missioncontrol.http import fleet_api, read_api, shares_api, tenants_api, upload_api
from exporter.missioncontrol.http.audited import Audited
from exporter.missioncontrol.http.guard import PATH, RECEIVER, Guard, Login, enter, form
from exporter.missioncontrol.http.public import BehindProxy, PublicUrl
from exporter.missioncontrol.http.responses import ApiError, error_answer
from exporter.missioncontrol.pages import (
    audit,
    event,
    export,
    feed,
    fleet,
    health,
    session,
    sessions,
    shares,
    waterfall,
)
from exporter.missioncontrol.pages.rendering import error_page, give, is_fragment
from exporter.missioncontrol.receiver import Receiver, ReceiverOptions
from exporter.missioncontrol.receivers import Receivers
from exporter.missioncontrol.store import tokens
from exporter.missioncontrol.store.port import Store, StoreAway, StoreError

_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "private, no-cache",
    "Vary": "Authorization, Cookie",
}
_REFUSALS: Final = {
    404: ("not_found", "Look at the address; docs/mission-control.md lists what is served."),
    405: ("method_not_allowed", "Use a method that the header Allow names."),
}
_FOR_PROGRAMS: Final = ("/api", "/agents", "/metrics", "/healthz", "/readyz")
_PAGES: Final = (
    Route(PATH, form),
    Route(PATH, enter, methods=["POST"]),
    Route("/", sessions.sessions_page),
    Route("/feed", feed.feed_page),
    Route("/health", health.health_page),
    Route("/fleet", fleet.fleet_page),
    Route("/shares", shares.shares_page),
    Route("/shares/{n:int}/revoke", shares.revoke, methods=["POST"]),
    Route("/audit", audit.audit_page),
    Route("/sessions/{id}", session.session_page),
    Route("/sessions/{id}/next", session.next_event),
    Route("/sessions/{id}/event", event.event_page),
    Route("/sessions/{id}/forget", session.forget_page),
    Route("/sessions/{id}/forget", session.forget, methods=["POST"]),
    Route("/sessions/{id}/waterfall", waterfall.waterfall_page),
    Route("/sessions/{id}/export.{form}", export.export),
    Route("/style.css", give("style.css", "text/css")),
    Route("/script.js", give("script.js", "text/javascript")),
    Route("/icon.svg", give("icon.svg", "image/svg+xml")),
)

_ROUTES: Final = (
    *upload_api.ROUTES,
    *read_api.ROUTES,
    *fleet_api.ROUTES,
    *tenants_api.ROUTES,
    *shares_api.ROUTES,
    *_PAGES,
)


def create_app(
    store: Store,
    *,
    redactor: RedactEvent | None = None,
    token: str | None = None,
    trusted_hosts: Iterable[str] = (),
    public: PublicUrl | None = None,
    **options: Unpack[ReceiverOptions],
) -> Starlette:
    """Return the application on this store, which stays the caller's to close.

    In process the token is asked for only when there is one; `server.serve_http` adds the rules for the network.
    """
    receivers = Receivers(Receiver(store, redactor, **options))
    login = Login(token or None, receivers.holder, receivers.hashed_holder, receivers.cookie_key)
    app = Starlette(
        routes=_ROUTES,
        middleware=[
            *([Middleware(BehindProxy, public=public)] if public is not None else []),
            Middleware(_FinishAnswers, default=receivers.default),
            Middleware(
                Guard,
                login=login,
                find_receiver=receivers.find,
                open_share=receivers.open_share,
                trusted_hosts=(*trusted_hosts, *([public.host] if public else [])),
                public_origin=public.origin if public else "",
            ),
            Middleware(Audited),
        ],
        exception_handlers={ApiError: _answer_api_error, HTTPException: _answer_http_error},
        lifespan=_live,
    )
    app.state.receivers, app.state.receiver = receivers, receivers.default
    app.state.login = login
    app.state.public = public
    app.state.has_token = bool(token) or _has_token(store)
    return app


def _has_token(store: Store) -> bool:
    """Tell whether there is a token; a store that is away is taken to have some, since without one nobody gets in."""
    try:
        return store.do(tokens.any_in_force)
    except StoreAway:
        return True


@asynccontextmanager
async def _live(app: Starlette) -> AsyncIterator[None]:
    receivers: Receivers = app.state.receivers
    await receivers.start()
    yield
    await receivers.stop()


async def _answer_api_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, ApiError)
    return error_page(request, error) if _is_for_a_person(request) else error_answer(error)


async def _answer_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 404 and request.method == "GET" and _is_for_a_person(request):
        hint = "The address is incomplete or misspelt, or comes from another version."
        return error_page(request, ApiError(404, "not_found", "Page not found.", hint=hint))
    kind, hint = _REFUSALS.get(error.status_code, ("refused", "docs/mission-control.md says what may be asked."))
    headers = dict(error.headers or {})
    return error_answer(ApiError(error.status_code, kind, error.detail, hint=hint, headers=headers))


def _is_for_a_person(request: Request) -> bool:
    """Tell whether a browser asks for a page to show, and not a program, the script among them.

    An error of the login form is no page, because a page loads files that only those who have a token get.
    """
    path, accepted = request.url.path, request.headers.get("accept", "")
    is_of_programs = any(path == name or path.startswith(f"{name}/") for name in _FOR_PROGRAMS)
    return "text/html" in accepted and not is_of_programs and path != PATH and not is_fragment(request)


class _FinishAnswers:
    """Counts answers by status for `/metrics`, and adds the headers that every answer needs.

    No cache on the way keeps an answer for somebody else; a browser asks each time whether it has changed.

    An uploader is told with every answer which store this is, so that it notices when that is another one.
    """

    def __init__(self, app: ASGIApp, default: Receiver) -> None:
        self._app = app
        self._default = default

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def finished(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                if headers["Cache-Control"] == "no-cache":  # what has an ETag is asked for again, but not for others
                    headers["Cache-Control"] = "private, no-cache"
                receiver: Receiver = scope.get("state", {}).get(RECEIVER, self._default)
                if scope["path"].startswith("/agents/") and message["status"] not in (401, 403):
                    with suppress(StoreError):  # the answer says so itself
                        headers[STORE_HEADER] = await receiver.identity()
                requests, status = receiver.counters.requests, str(message["status"])
                requests[status] = requests.get(status, 0) + 1
            await send(message)

        await self._app(scope, receive, finished if scope["type"] == "http" else send)
