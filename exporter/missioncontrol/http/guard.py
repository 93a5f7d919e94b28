"""Access to the receiver: the right Host and Origin, and a token or the same user on loopback.

A browser that needs a token gets in by the token in a form, or by an address that works once. Either becomes a cookie,
which is worth nothing once half a day has passed without a request that brought it, or once the token that it was given
for is revoked. That of a token is sealed with a key of the store, so that every receiver of the store knows it; that of
an address is known to this process only.
"""

import asyncio
import re
import secrets
import time
from collections.abc import Awaitable, Callable, Iterable
from hashlib import blake2b, sha256
from hmac import compare_digest
from typing import Final, TypeAlias
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection, Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from exporter.missioncontrol.http.permissions import HOLDER, forbidden, pages_of
from exporter.missioncontrol.http.responses import ApiError, api_errors, error_answer
from exporter.missioncontrol.pages.formats import local
from exporter.missioncontrol.pages.rendering import render, style_hash
from exporter.missioncontrol.store.tokens import OWNER, PREFIX, Holder

FindHolder: TypeAlias = Callable[[str], Awaitable[Holder | None]]
FindHashed: TypeAlias = Callable[[str, bytes], Awaitable[Holder | None]]
ReadKey: TypeAlias = Callable[[], Awaitable[bytes]]
OpenShare: TypeAlias = Callable[[str], Awaitable[tuple[object, object] | None]]
FindReceiver: TypeAlias = Callable[[str], Awaitable[object | None]]

PATH: Final = "/enter"
COOKIE: Final = "exporter_visitor"
_COOKIE_SECONDS, _CODE_SECONDS = 12 * 3600, 600
_RENEWED_SECONDS: Final = 1800
_SKEW_SECONDS: Final = 120
"""How far the clocks of two receivers may be apart."""
_KEPT_SECONDS: Final = 30 * 86_400
"""How long a browser keeps the cookie; for how long it is valid is decided here, not by the browser."""
_ENTRIES_MAX: Final = 1000
_FORM_BYTES_MAX: Final = 4096
_WRONG_TOKEN_SECONDS: Final = 0.5
_FORM_SECONDS: Final = 10.0
_HEADERS: Final = {
    # With "no-referrer" a browser hides from us that the form is ours: its Origin would be "null".
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Login:
    """Who has come in. Codes, and cookies that are given for them, are held as hashes, in memory only.

    `find_hashed` finds the holder of a token in force by tenant and hash; `read_key` gives the key of sealed cookies.
    """

    def __init__(
        self,
        token: str | None,
        find_holder: FindHolder,
        find_hashed: FindHashed,
        read_key: ReadKey,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.token = token
        self._find_holder, self._find_hashed, self._read_key = find_holder, find_hashed, read_key
        self._clock = clock
        self._key = b""
        self._codes: dict[bytes, float] = {}
        self._cookies: dict[bytes, float] = {}

    def one_time_code(self) -> str:
        """Return a code for `/enter?once=CODE`, good for ten minutes and one use."""
        return self._make(self._codes, _CODE_SECONDS)

    def use(self, code: str) -> str | None:
        """Return a cookie for a code, which is worthless from then on."""
        if self._codes.pop(_hash(code), 0.0) <= self._clock():
            return None
        return self._make(self._cookies, _COOKIE_SECONDS)

    async def holder(self, token: str) -> Holder | None:
        """Return who has this token, or None; the holder of the receiver's own token has no name."""
        if self.token is not None and compare_digest(token.encode(), self.token.encode()):
            return OWNER
        return await self._find_holder(token) if token.startswith(PREFIX) else None

    async def admit(self, token: str) -> tuple[str, Holder] | None:
        """Return a cookie for a token that opens pages, and whose it is; None for any other, after a moment."""
        holder = await self.holder(token)
        if holder is not None and holder.scope != "upload":
            return await self._sealed(holder), holder
        await asyncio.sleep(_WRONG_TOKEN_SECONDS)
        return None

    async def visitor(self, cookie: str) -> tuple[Holder, str | None] | None:
        """Return who has this cookie, and one to go on with if there is another by now; None if it is not good."""
        hashed, now = _hash(cookie), self._clock()
        if self._cookies.get(hashed, 0.0) > now:
            self._cookies[hashed] = now + _COOKIE_SECONDS
            return OWNER, None
        text, _, seal = cookie.rpartition(".")
        if not compare_digest(seal.encode("utf-8", "replace"), (await self._seal(text)).encode()):
            return None
        issued, tenant, token = text.split(".")
        if not int(issued) - _SKEW_SECONDS <= now < int(issued) + _COOKIE_SECONDS:
            return None
        holder = await self._find_hashed(tenant, bytes.fromhex(token)) if token else OWNER if self.token else None
        if holder is None:
            return None
        return holder, await self._sealed(holder) if now > int(issued) + _RENEWED_SECONDS else None

    async def _sealed(self, holder: Holder) -> str:
        text = f"{int(self._clock())}.{holder.tenant}.{holder.hash.hex()}"
        return f"{text}.{await self._seal(text)}"

    async def _seal(self, text: str) -> str:
        """Return the keyed hash of a cookie; the receiver's own token is in it, so that another one ends all of its."""
        self._key = self._key or await self._read_key()
        own = (self.token or "") if text.endswith(".") else ""
        return blake2b(f"{text}\0{own}".encode("utf-8", "replace"), key=self._key, digest_size=32).hexdigest()

    def _make(self, given: dict[bytes, float], seconds: float) -> str:
        secret = secrets.token_urlsafe(32)
        if len(given) >= _ENTRIES_MAX:
            del given[min(given, key=given.__getitem__)]
        given[_hash(secret)] = self._clock() + seconds
        return secret


def _hash(secret: str) -> bytes:
    return sha256(secret.encode("utf-8", "replace")).digest()


async def form(request: Request) -> Response:
    """Let a one-time address in, or ask for the token."""
    login: Login = request.app.state.login
    code = request.query_params.get("once")
    if code is None:
        return _form()
    cookie = login.use(code)
    if cookie is None:
        return _form("This address has already been used, or has expired after ten minutes.")
    return _entered(request, cookie, OWNER)


async def enter(request: Request) -> Response:
    """Take the token from the form and answer with a cookie."""
    login: Login = request.app.state.login
    try:
        async with asyncio.timeout(_FORM_SECONDS):
            body = await _form_of(request)
    except TimeoutError as error:
        raise ApiError(408, "slow_body", "The form did not arrive in time.", hint="Send it again.") from error
    given = parse_qs(body.decode("utf-8", "replace")).get("token", [""])[0]
    admitted = await login.admit(given.strip())
    return _form("Invalid token.") if admitted is None else _entered(request, *admitted)


async def _form_of(request: Request) -> bytes:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _FORM_BYTES_MAX:
            raise ApiError(413, "too_large", "The form is too large for a token.", hint="Send the token alone.")
    return body


def _form(refusal: str = "") -> Response:
    policy = (
        f"default-src 'none'; style-src 'sha256-{style_hash('login.css')}'; img-src data:; form-action 'self';"
        " base-uri 'none'; frame-ancestors 'none'"
    )
    return Response(
        render("login.html", refusal=refusal),
        status_code=401 if refusal else 200,
        media_type="text/html",
        headers={"Content-Security-Policy": policy, **_HEADERS},
    )


def _entered(request: Request, cookie: str, holder: Holder) -> Response:
    answer = RedirectResponse(local(pages_of(holder)[0][0]), status_code=303, headers=_HEADERS)
    _set_cookie(answer, request, cookie)
    return answer


def _set_cookie(answer: Response, request: HTTPConnection, cookie: str) -> None:
    answer.set_cookie(
        COOKIE,
        cookie,
        max_age=_KEPT_SECONDS,
        path=local("/"),
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )


PEER: Final = "peer"
"""The key in the scope's state for who is at the other end of a connection; absent in process. Set by `server`."""

ADMITTED: Final = "admitted"
"""The key in the scope's state of who presented a token or a cookie; absent for others. Read by `server`."""

_NEW_COOKIE: Final = "new_cookie"
"""The key in the scope's state for the cookie that a browser is to have from now on; absent if it may keep its own."""

SHARED: Final = "/shared/"
"""Where share links begin; who has one needs no token."""

RECEIVER: Final = "receiver"
"""The key in the scope's state for the receiver of the tenant whose request it is."""

_LOOPBACK_NAMES: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_NETLOC: Final = re.compile(r"([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::([0-9]{1,5}))?")
_PORTS: Final = {"http": 80, "https": 443}
_BEARER: Final = re.compile(r"\Abearer +", re.IGNORECASE)
_FORWARDED: Final = ("forwarded", "x-forwarded-for", "x-real-ip")


class Guard:
    """Refuses what may not come in before any endpoint sees it. `/healthz` and `/enter` are open to everybody."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        login: Login,
        find_receiver: FindReceiver,
        open_share: OpenShare,
        trusted_hosts: Iterable[str],
        public_origin: str = "",
    ) -> None:
        self._app = app
        self._login, self._find_receiver, self._open_share = login, find_receiver, open_share
        self._hosts = _LOOPBACK_NAMES | {host.lower() for host in trusted_hosts}
        scheme, _, place = public_origin.partition("://")
        self._public = _site(scheme, place)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] != "/healthz":
            try:
                with api_errors():
                    refusal = await self._refusal(scope)
            except ApiError as error:  # the store cannot say whose token it is
                return await error_answer(error)(scope, receive, send)
            if refusal is not None:
                may_enter = self._may_enter(scope, refusal)
                answer = RedirectResponse(local(PATH), status_code=303) if may_enter else error_answer(refusal)
                return await answer(scope, receive, send)
        await self._app(scope, receive, self._renewing(scope, send))

    def _renewing(self, scope: Scope, send: Send) -> Send:
        """Return what gives a browser another cookie with the answer, if its cookie is not new any more."""
        cookie = scope.get("state", {}).get(_NEW_COOKIE)
        if cookie is None:
            return send
        given = Response()
        _set_cookie(given, HTTPConnection(scope), cookie)

        async def renewing(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).append("Set-Cookie", given.headers["Set-Cookie"])
            await send(message)

        return renewing

    async def _refusal(self, scope: Scope) -> ApiError | None:
        headers = Headers(scope=scope)
        if scope["path"].startswith(SHARED):
            return await self._by_link(scope)
        bearer = _BEARER.sub("", headers.get("authorization", "")).strip()
        holder = await self._login.holder(bearer) or await self._visitor(scope)
        receiver = await self._find_receiver((holder or OWNER).tenant)
        if receiver is None:  # the tenant was removed just now
            holder, receiver = None, await self._find_receiver(OWNER.tenant)
        state = scope.setdefault("state", {})
        state[RECEIVER] = receiver
        if holder is not None:
            state[HOLDER] = holder
            if (refused := forbidden(holder, scope["method"], scope["path"], PATH)) is not None:
                return refused
            state[ADMITTED] = True
        elif (refused := forbidden(OWNER, scope["method"], scope["path"], PATH)) is not None:
            return self._stranger(scope, headers) or refused
        has_token = holder is not None or scope["path"] == PATH
        if (foreign := self._foreign(scope, headers, has_token=has_token)) is not None:
            return foreign
        return None if has_token else self._stranger(scope, headers)

    async def _by_link(self, scope: Scope) -> ApiError | None:
        """Let in who has a share link, to what it shows."""
        found = None
        if scope["method"] in ("GET", "HEAD"):
            found = await self._open_share(scope["path"].removeprefix(SHARED))
        if found is None:
            hint = "It may be past its time, or revoked. Ask who sent it to you."
            return ApiError(404, "unknown_share", "This link shows nothing.", hint=hint)
        state = scope.setdefault("state", {})
        state[RECEIVER], state["share"] = found
        return None

    def _may_enter(self, scope: Scope, refusal: ApiError) -> bool:
        """Tell whether a browser is better led to the door: a team's receiver has names that it does not know."""
        if scope["method"] != "GET" or "text/html" not in Headers(scope=scope).get("accept", ""):
            return False
        is_for_a_team = self._login.token is not None or scope.get("state", {}).get(PEER) == "remote"
        return refusal.kind == "no_token" or (refusal.kind == "foreign_host" and is_for_a_team)

    async def _visitor(self, scope: Scope) -> Holder | None:
        """Return who came in with a browser; its cookie goes to no other host, nor from one."""
        cookie = HTTPConnection(scope).cookies.get(COOKIE)
        found = None if cookie is None else await self._login.visitor(cookie)
        if found is None:
            return None
        holder, renewed = found
        if renewed is not None:
            scope.setdefault("state", {})[_NEW_COOKIE] = renewed
        return holder

    def _foreign(self, scope: Scope, headers: Headers, *, has_token: bool) -> ApiError | None:
        """A page elsewhere cannot send our token, so only who lacks it is bound to the known host names."""
        host = _host_name(headers.get("host", ""))
        if host not in self._hosts and not has_token:
            return ApiError(
                403,
                "foreign_host",
                "This Host is not served here.",
                hint="Use localhost, or start it with --public-url.",
            )
        origin = headers.get("origin")
        is_ours = (
            origin is None
            or _is_ours(origin, scope.get("scheme", "http"), headers.get("host", ""))
            or (self._public is not None and self._public == _site_of(origin))
        )
        if is_ours and _is_asked_by_us(scope, headers):
            return None
        return ApiError(
            403,
            "foreign_origin",
            "Requests from another site are not served.",
            hint="Open the page itself, or send the request from a program.",
        )

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
    site = _site_of(origin)
    return site is not None and any(site == _site(one, netloc) for one in outer)


def _site_of(origin: str) -> tuple[str, str, int] | None:
    scheme, _, place = origin.partition("://")
    return _site(scheme, place)


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
