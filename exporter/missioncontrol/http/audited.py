"""Notes in the audit log what people read, search and export, before they are answered.

What cannot be noted is not answered. What changes something is noted in the transaction of the change.
"""

import re
from typing import Final

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from exporter.missioncontrol.http.permissions import holder_of
from exporter.missioncontrol.http.responses import ApiError, error_answer
from exporter.missioncontrol.receiver import receiver_of

_OF_A_SESSION: Final = re.compile(r"(?:/api/v1)?/sessions/([^/]+)(/.*)?")
_READS: Final = {
    "/api/v1/stream": "watch",
    "/feed": "read",
    "/api/v1/notifications": "read",
    "/api/v1/search": "search",
}


def who_asks(request: Request) -> str:
    """Return who is named in the audit log."""
    return holder_of(request).name or "(owner)"


def told_of(request: Request) -> tuple[str, str | None] | None:
    """Return the action of a request that reads, and its session; None for what shows no content."""
    path, asked = request.url.path, request.query_params
    if request.method not in ("GET", "HEAD"):
        return None
    if (match := _OF_A_SESSION.fullmatch(path)) is not None:
        is_export = (match[2] or "").startswith("/export.")
        return ("export" if is_export else "read"), match[1]
    if path == "/":
        return ("search" if asked.get("q") else "list"), None
    if path == "/api/v1/sessions":
        return "list", None
    action = _READS.get(path)
    return None if action is None else (action, asked.get("session") or None)


class Audited:
    """The middleware; it stands behind `Guard`, which knows who asks."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        told = None
        if scope["type"] == "http" and "receiver" in scope.get("state", {}):
            request = Request(scope)
            told = told_of(request) if receiver_of(request).audits else None
        if told is None:
            return await self._app(scope, receive, send)
        action, session = told
        refused = False

        async def noted(message: Message) -> None:
            nonlocal refused
            if message["type"] == "http.response.start" and message["status"] < 400:
                try:
                    await receiver_of(request).tell(who_asks(request), action, session)
                except ApiError as error:
                    refused = True
                    await error_answer(error)(scope, receive, send)
            if not refused:
                await send(message)

        return await self._app(scope, receive, noted)
