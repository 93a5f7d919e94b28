"""How a browser gets in where it needs a token: by the token in a form, or by an address that works once.

Either becomes a cookie that only this receiver reads. It is worth nothing once half a day has passed without a request
that brought it, after a restart, or once the token that it was given for is revoked.
"""

import asyncio
import secrets
import time
from base64 import b64encode
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from hashlib import sha256
from hmac import compare_digest
from typing import Final, TypeAlias
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from exporter.missioncontrol.http.responses import ApiError
from exporter.missioncontrol.pages.rendering import render
from exporter.missioncontrol.store.tokens import PREFIX, Holder

FindHolder: TypeAlias = Callable[[str], Awaitable[Holder | None]]
IsInForce: TypeAlias = Callable[[bytes], Awaitable[bool]]

PATH: Final = "/enter"
COOKIE: Final = "exporter_visitor"
_OWNER: Final = Holder("", "all", b"")
_COOKIE_SECONDS, _CODE_SECONDS = 12 * 3600, 600
_KEPT_SECONDS: Final = 30 * 86_400
"""How long a browser keeps the cookie; how long it is good is told here alone."""
_ENTRIES_MAX: Final = 1000
_FORM_BYTES_MAX: Final = 4096
_WRONG_TOKEN_SECONDS: Final = 0.5
_FORM_SECONDS: Final = 10.0
_HEADERS: Final = {
    # With "no-referrer" a browser hides from us that the form is ours: its Origin would be "null".
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}


@dataclass(frozen=True, slots=True)
class _Pass:
    """Until when a code or a cookie is good, and for which token, by its hash, it was given; None where none ends."""

    end: float
    token: bytes | None = None


class Login:
    """Who has come in. Codes and cookies are held as hashes, in memory only."""

    def __init__(
        self,
        token: str | None,
        find_holder: FindHolder,
        is_in_force: IsInForce,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.token = token
        self._find_holder = find_holder
        self._is_in_force = is_in_force
        self._clock = clock
        self._codes: dict[bytes, _Pass] = {}
        self._cookies: dict[bytes, _Pass] = {}

    def one_time_code(self) -> str:
        """Return a code for `/enter?once=CODE`, good for ten minutes and one use."""
        return self._make(self._codes, _CODE_SECONDS)

    def use(self, code: str) -> str | None:
        """Return a cookie for a code, which is worthless from then on."""
        given = self._codes.pop(_hash(code), None)
        if given is None or given.end <= self._clock():
            return None
        return self._make(self._cookies, _COOKIE_SECONDS)

    async def holder(self, token: str) -> Holder | None:
        """Return who has this token, or None; the holder of the receiver's own token has no name."""
        if self.token is not None and compare_digest(token.encode(), self.token.encode()):
            return _OWNER
        return await self._find_holder(token) if token.startswith(PREFIX) else None

    async def admit(self, token: str) -> str | None:
        """Return a cookie for a token that may read; None for any other, after a moment."""
        holder = await self.holder(token)
        if holder is not None and holder.scope == "all":
            return self._make(self._cookies, _COOKIE_SECONDS, holder.hash or None)
        await asyncio.sleep(_WRONG_TOKEN_SECONDS)
        return None

    async def knows(self, cookie: str) -> bool:
        """Tell whether this cookie was given out and is still good; then it is good for another half a day."""
        hashed, now = _hash(cookie), self._clock()
        given = self._cookies.get(hashed)
        if given is None or given.end <= now:
            return False
        if given.token is not None and not await self._is_in_force(given.token):
            self._cookies.pop(hashed, None)
            return False
        self._cookies[hashed] = _Pass(now + _COOKIE_SECONDS, given.token)
        return True

    def _make(self, given: dict[bytes, _Pass], seconds: float, token: bytes | None = None) -> str:
        secret = secrets.token_urlsafe(32)
        if len(given) >= _ENTRIES_MAX:
            del given[min(given, key=lambda hashed: given[hashed].end)]
        given[_hash(secret)] = _Pass(self._clock() + seconds, token)
        return secret


def _hash(secret: str) -> bytes:
    return sha256(secret.encode("utf-8", "replace")).digest()


async def form(request: Request) -> Response:
    """Let a one-time address in, or ask for the token."""
    login: Login = request.app.state.login
    code = request.query_params.get("once")
    if code is None:
        return _form()
    return _entered(
        request, login.use(code), refusal="This address has already been used, or has expired after ten minutes."
    )


async def enter(request: Request) -> Response:
    """Take the token from the form and answer with a cookie."""
    login: Login = request.app.state.login
    try:
        async with asyncio.timeout(_FORM_SECONDS):
            body = await _form_of(request)
    except TimeoutError as error:
        raise ApiError(408, "slow_body", "The form did not arrive in time.", hint="Send it again.") from error
    given = parse_qs(body.decode("utf-8", "replace")).get("token", [""])[0]
    return _entered(request, await login.admit(given.strip()), refusal="Invalid token.")


async def _form_of(request: Request) -> bytes:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _FORM_BYTES_MAX:
            raise ApiError(413, "too_large", "The form is too large for a token.", hint="Send the token alone.")
    return body


def _form(refusal: str = "") -> Response:
    style_hash = b64encode(sha256(render("login.css").encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'sha256-{style_hash}'; img-src data:; form-action 'self';"
        " base-uri 'none'; frame-ancestors 'none'"
    )
    return Response(
        render("login.html", refusal=refusal),
        status_code=401 if refusal else 200,
        media_type="text/html",
        headers={"Content-Security-Policy": policy, **_HEADERS},
    )


def _entered(request: Request, cookie: str | None, *, refusal: str) -> Response:
    if cookie is None:
        return _form(refusal)
    answer = RedirectResponse("/", status_code=303, headers=_HEADERS)
    answer.set_cookie(
        COOKIE,
        cookie,
        max_age=_KEPT_SECONDS,
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )
    return answer
