"""A browser that needs a token gets in by a form or by an address that works once, and stays in by a cookie."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import pytest

from exporter.missioncontrol.http.guard import COOKIE, Login
from exporter.missioncontrol.store import tokens
from exporter.missioncontrol.store.sqlite.store import SqliteStore as Store
from exporter.missioncontrol.store.tokens import OWNER

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

    async def never(_: object) -> bool:
        return False

    entrance = Login("right", nobody, never, lambda: now[0])
    code, late = entrance.one_time_code(), entrance.one_time_code()
    cookie = entrance.use(code)
    assert cookie is not None
    before = await entrance.visitor(cookie)
    now[0] = 11 * 3600.0
    used = await entrance.visitor(cookie)
    now[0] = 22 * 3600.0
    used_again = await entrance.visitor(cookie)
    now[0] = 35 * 3600.0

    assert (before, used, used_again) == (OWNER, OWNER, OWNER)
    assert (await entrance.visitor(cookie), entrance.use(late)) == (None, None)
    assert await Login(None, nobody, never).visitor("") is None


async def test_a_form_of_many_megabytes_is_refused(browser: httpx.AsyncClient) -> None:
    assert (await browser.post("/enter", content=b"token=" + b"x" * 10_000)).status_code == 413
