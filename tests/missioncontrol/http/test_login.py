"""A browser that needs a token gets in by a form or by an address that works once, and stays in by a cookie."""

import re
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import pytest

from exporter.missioncontrol.http.guard import COOKIE, Login
from exporter.missioncontrol.store import tenants, tokens
from exporter.missioncontrol.store.opening import open_store
from exporter.missioncontrol.store.sqlite.store import SqliteStore as Store
from exporter.missioncontrol.store.tokens import OWNER, PREFIX, Holder
from tests.missioncontrol.conftest import Opener

pytestmark = pytest.mark.anyio


@pytest.fixture
async def browser(store: Store, open_client: Callable[..., Any], monkeypatch: Any) -> AsyncIterator[httpx.AsyncClient]:
    monkeypatch.setattr("exporter.missioncontrol.http.guard._WRONG_TOKEN_SECONDS", 0)
    async with open_client(store, token="right", headers={"Accept": "text/html", "Host": "mc.team.example"}) as client:
        yield client


async def test_a_browser_without_a_token_is_led_to_the_form(browser: httpx.AsyncClient) -> None:
    answer = await browser.get("/")
    form = await browser.get("/enter")
    for_programs = await browser.get("/api/v1/sessions", headers={"Accept": "application/json", "Host": "localhost"})

    assert (form.status_code, "<form" in form.text, for_programs.status_code) == (200, True, 401)
    assert (answer.status_code, answer.headers["location"]) == (303, "/enter")
    assert "script" not in form.headers["content-security-policy"]


async def test_the_right_token_becomes_a_cookie_that_opens_everything(browser: httpx.AsyncClient) -> None:
    entered = await browser.post("/enter", data={"token": " right "})

    assert (entered.status_code, entered.headers["location"]) == (303, "/")
    flags = entered.headers["set-cookie"].lower()
    assert all(flag in flags for flag in ("httponly", "samesite=strict", "path=/"))
    assert (await browser.get("/api/v1/sessions")).status_code == 200
    foreign = await browser.get("/api/v1/sessions", headers={"Origin": "http://evil.example"})
    assert foreign.status_code == 403


@pytest.mark.parametrize("token", ["", "wrong", "xmc_x", "ü", "x" * 3000])
async def test_a_wrong_token_opens_nothing(browser: httpx.AsyncClient, token: str) -> None:
    answer = await browser.post("/enter", data={"token": token})

    assert (answer.status_code, "set-cookie" in answer.headers) == (401, False)


async def test_a_token_of_its_own_opens_the_page_unless_it_is_for_uploading(
    browser: httpx.AsyncClient, store: Store
) -> None:
    person = store.do(lambda database: tokens.create(database, "ann", "now"))
    machine = store.do(lambda database: tokens.create(database, "laptop", "now", scope="upload"))

    answers = [(await browser.post("/enter", data={"token": token})).status_code for token in (machine, person)]

    assert answers == [401, 303]


@pytest.mark.parametrize("again", [False, True])
async def test_a_cookie_ends_with_the_token_that_it_came_from(
    browser: httpx.AsyncClient, store: Store, again: bool
) -> None:
    token = store.do(lambda database: tokens.create(database, "ann", "now"))
    await browser.post("/enter", data={"token": token})
    before = await browser.get("/api/v1/sessions")

    store.do(lambda database: tokens.revoke(database, "ann", "later"))
    if again:  # a new token of the same name is another one
        store.do(lambda database: tokens.create(database, "ann", "later"))

    asked = await browser.get("/api/v1/sessions")
    deleted = await browser.delete("/api/v1/sessions/s")
    assert (before.status_code, asked.status_code, deleted.status_code) == (200, 303, 403)


async def test_other_cookies_outlive_a_revoked_token(browser: httpx.AsyncClient, store: Store) -> None:
    store.do(lambda database: tokens.create(database, "ann", "now"))
    await browser.post("/enter", data={"token": "right"})

    store.do(lambda database: tokens.revoke(database, "ann", "later"))

    assert (await browser.get("/api/v1/sessions")).status_code == 200


async def test_an_address_works_once(browser: httpx.AsyncClient) -> None:
    entrance: Login = browser._transport.app.state.login  # type: ignore[attr-defined]  # of the ASGI transport
    code = entrance.one_time_code()

    first = await browser.get(f"/enter?once={code}")
    opened = await browser.get("/api/v1/sessions")
    browser.cookies.clear()
    again = await browser.get(f"/enter?once={code}")

    assert (first.status_code, opened.status_code, again.status_code) == (303, 200, 401)


async def test_a_forged_cookie_opens_nothing(browser: httpx.AsyncClient) -> None:
    browser.cookies.set(COOKIE, "forged")

    assert (await browser.get("/api/v1/sessions")).status_code == 303


async def test_codes_and_cookies_end() -> None:
    now = [0.0]

    async def nobody(_: object) -> None:
        return None

    async def nobodys(_tenant: str, _hash: bytes) -> None:
        return None

    async def key() -> bytes:
        return b"key"

    entrance = Login("right", nobody, nobodys, key, lambda: now[0])
    code, late = entrance.one_time_code(), entrance.one_time_code()
    cookie = entrance.use(code)
    assert cookie is not None
    before = await entrance.visitor(cookie)
    now[0] = 11 * 3600.0
    used = await entrance.visitor(cookie)
    now[0] = 22 * 3600.0
    used_again = await entrance.visitor(cookie)
    now[0] = 35 * 3600.0

    assert (before, used, used_again) == ((OWNER, None), (OWNER, None), (OWNER, None))
    assert (await entrance.visitor(cookie), entrance.use(late)) == (None, None)
    assert await Login(None, nobody, nobodys, key).visitor("") is None


async def test_a_sealed_cookie_is_renewed_while_it_is_used_and_ends_with_the_token_or_its_time() -> None:
    now = [1e9]
    ann = Holder("ann", "read", b"hash of ann", "red")

    async def find(token: str) -> Holder | None:
        return ann if token == f"{PREFIX}ann" else None

    async def find_hashed(tenant: str, hashed: bytes) -> Holder | None:
        return ann if (tenant, hashed) == ("red", b"hash of ann") else None

    def login(token: str | None, secret: bytes = b"key") -> Login:
        async def key() -> bytes:
            return secret

        return Login(token, find, find_hashed, key, lambda: now[0])

    hers, owners = await login("right").admit(f"{PREFIX}ann"), await login("right").admit("right")
    assert hers is not None
    assert owners is not None
    cookie, own = hers[0], owners[0]
    assert await login("right").visitor(cookie) == await login(None).visitor(cookie) == (ann, None)
    assert await login("right").visitor(own) == (OWNER, None)
    assert [await one.visitor(own) for one in (login("another"), login(None), login("right", b"x"))] == [None] * 3
    forged = (cookie.replace("red", "blue"), f"{int(now[0])}.default..{own[-64:]}0", "...", "a.b.c.d", cookie[:-1])
    assert [await login("right").visitor(one) for one in forged] == [None] * 5

    now[0] += 3600
    found = await login("right").visitor(cookie)
    assert found is not None
    assert found[1] is not None
    assert found[1] != cookie
    now[0] += 11.5 * 3600
    assert (await login("right").visitor(cookie), await login("right").visitor(found[1])) != (None, None)
    assert await login("right").visitor(cookie) is None


async def test_every_receiver_of_a_store_knows_the_cookie_of_another(address: str, open_client: Opener) -> None:
    with open_store(address) as one, open_store(address) as other:
        red = one.tenant(tenants.create(one, "red", "now"))
        token = red.do(lambda database: tokens.create(database, "anna", "now", scope="read", tenant="red"))
        headers = {"Accept": "text/html", "Host": "mc.team.example"}
        clients = [open_client(store, token="right", headers=headers) for store in (one, other)]
        async with clients[0] as first, clients[1] as second:
            await first.post("/enter", data={"token": token})
            cookie = first.cookies[COOKIE]
            second.cookies.set(COOKIE, cookie)
            opened = await second.get("/api/v1/sessions")
            forbidden = await second.get("/fleet")
            red.do(lambda database: tokens.revoke(database, "anna", "later"))
            revoked = await second.get("/api/v1/sessions")

    assert (opened.status_code, forbidden.status_code, revoked.status_code) == (200, 403, 303)
    assert token not in cookie


async def test_an_operator_comes_in_to_the_fleet_and_sees_no_other_page(
    browser: httpx.AsyncClient, store: Store
) -> None:
    token = store.do(lambda database: tokens.create(database, "olga", "now", scope="operator"))
    entered = await browser.post("/enter", data={"token": token})
    fleet = await browser.get("/fleet")
    sessions = await browser.get("/")

    assert (entered.status_code, entered.headers["location"]) == (303, "/fleet")
    assert (fleet.status_code, sessions.status_code) == (200, 403)
    assert re.findall(r'<nav aria-label="Pages">(.*?)</nav>', fleet.text)[0].count("<a ") == 1


async def test_a_form_of_many_megabytes_is_refused(browser: httpx.AsyncClient) -> None:
    assert (await browser.post("/enter", content=b"token=" + b"x" * 10_000)).status_code == 413
