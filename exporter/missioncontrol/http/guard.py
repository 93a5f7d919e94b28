"""Access to the receiver: the right Host and Origin, and a token or the same user on loopback."""

import re
from collections.abc import Iterable
from typing import Final

from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from exporter.missioncontrol.http.login import COOKIE, PATH, Login
from exporter.missioncontrol.http.responses import ApiError, error_answer

PEER: Final = "peer"
"""The key in the scope's state for who is at the other end of a connection; absent in process. Set by `connection`."""

ADMITTED: Final = "admitted"
"""The key in the scope's state of who presented a token or a cookie; absent for others. Read by `connection`."""

HOLDER: Final = "token_holder"
"""The key in the scope's state for the name of the token that was presented; absent without one."""

_LOOPBACK_NAMES: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_NETLOC: Final = re.compile(r"([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::([0-9]{1,5}))?")
_PORTS: Final = {"http": 80, "https": 443}
_FORWARDED: Final = ("forwarded", "x-forwarded-for", "x-real-ip")


class Guard:
    """Refuses what may not come in before any endpoint sees it. `/healthz` and `/enter` are open to everybody."""

    def __init__(self, app: ASGIApp, *, login: Login, trusted_hosts: Iterable[str]) -> None:
        self._app = app
        self._login = login
        self._hosts = _LOOPBACK_NAMES | {host.lower() for host in trusted_hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] != "/healthz":
            refusal = await self._refusal(scope)
            if refusal is not None:
                may_enter = self._may_enter(scope, refusal)
                answer = RedirectResponse(PATH, status_code=303) if may_enter else error_answer(refusal)
                return await answer(scope, receive, send)
        await self._app(scope, receive, send)

    async def _refusal(self, scope: Scope) -> ApiError | None:
        headers = Headers(scope=scope)
        bearer = headers.get("authorization", "").removeprefix("Bearer ").strip()
        holder = await self._login.holder(bearer)
        if holder is not None and holder.name:
            scope.setdefault("state", {})[HOLDER] = holder.name
            if holder.scope == "upload" and not scope["path"].startswith("/agents/"):
                return ApiError(403, "upload_only", "This token is for uploading.", hint="Use one that may read.")
        has_token = holder is not None or await self._is_visitor(scope)
        if has_token:
            scope.setdefault("state", {})[ADMITTED] = True
        has_token = has_token or scope["path"] == PATH
        if (foreign := self._foreign(scope, headers, has_token=has_token)) is not None:
            return foreign
        return None if has_token else self._stranger(scope, headers)

    def _may_enter(self, scope: Scope, refusal: ApiError) -> bool:
        """Tell whether a browser is better led to the door: a team's receiver has names that it does not know."""
        if not _is_page(scope):
            return False
        is_for_a_team = self._login.token is not None or scope.get("state", {}).get(PEER) == "remote"
        return refusal.kind == "no_token" or (refusal.kind == "foreign_host" and is_for_a_team)

    async def _is_visitor(self, scope: Scope) -> bool:
        """Tell whether a browser has come in; its cookie goes to no other host, nor from one."""
        cookie = HTTPConnection(scope).cookies.get(COOKIE)
        return cookie is not None and await self._login.knows(cookie)

    def _foreign(self, scope: Scope, headers: Headers, *, has_token: bool) -> ApiError | None:
        """A page elsewhere cannot send our token, so only who lacks it is bound to the known host names."""
        host = _host_name(headers.get("host", ""))
        if host not in self._hosts and not has_token:
            return ApiError(
                403, "foreign_host", "This Host is not served here.", hint="Use localhost, or name it as trusted."
            )
        origin = headers.get("origin")
        if origin is not None and not _is_ours(origin, scope.get("scheme", "http"), headers.get("host", "")):
            return _foreign_site()
        return None if _is_asked_by_us(scope, headers) else _foreign_site()

    def _stranger(self, scope: Scope, headers: Headers) -> ApiError | None:
        peer = scope.get("state", {}).get(PEER)
        if peer == "other":
            return ApiError(403, "other_user", "This receiver belongs to another user.", hint="Send its token.")
        if peer == "same" and not any(name in headers for name in _FORWARDED):
            return None
        if peer is None and self._login.token is None:
            return None
        return ApiError(
            401,
            "no_token",
            "The token is missing or wrong.",
            hint="Send Authorization: Bearer TOKEN, or open the address that `exporter up` prints.",
            headers={"WWW-Authenticate": "Bearer"},
        )


def _foreign_site() -> ApiError:
    return ApiError(
        403,
        "foreign_origin",
        "Requests from another site are not served.",
        hint="Open the page itself, or send the request from a program.",
    )


def _is_page(scope: Scope) -> bool:
    return scope["method"] == "GET" and "text/html" in Headers(scope=scope).get("accept", "")


def _is_asked_by_us(scope: Scope, headers: Headers) -> bool:
    """Tell whether the browser, if it says so, was sent by a page of ours or by its user, who may follow a link."""
    if headers.get("sec-fetch-site", "none") in ("none", "same-origin"):
        return True
    kind = scope["method"], headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest")
    return kind == ("GET", "navigate", "document")


def _is_ours(origin: str, scheme: str, netloc: str) -> bool:
    """Tell whether a page is ours: another port of this machine is another site, and may be another user's.

    What is http here may be https to a browser, behind a proxy; but no proxy stands before this machine's own names.
    """
    outer = {scheme} if _host_name(netloc) in _LOOPBACK_NAMES else {scheme, "https"}
    theirs, _, place = origin.partition("://")
    site = _site(theirs, place)
    return site is not None and any(site == _site(one, netloc) for one in outer)


def _site(scheme: str, netloc: str) -> tuple[str, str, int] | None:
    """Return scheme, name and port, so that what is one site compares equal; None when it is none."""
    match = _NETLOC.fullmatch(netloc)
    if match is None or scheme not in _PORTS:
        return None
    return scheme, _host_name(netloc), int(match.group(2) or _PORTS[scheme])


def _host_name(netloc: str) -> str:
    """Return the name without port, brackets and case; "" when it is not one."""
    match = _NETLOC.fullmatch(netloc)
    return match.group(1).strip("[]").lower() if match else ""
