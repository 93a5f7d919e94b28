"""Who may speak to the receiver."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from exporter.missioncontrol.http.guard import PEER, Guard, Login
from exporter.missioncontrol.store.sqlite.store import SqliteStore as Store

pytestmark = pytest.mark.anyio


@pytest.fixture
def ask(open_client: Callable[..., Any]) -> Callable[..., Any]:
    async def get(path: str = "/api/v1/sessions", *, headers: dict[str, str], **options: Any) -> httpx.Response:
        with Store(":memory:") as store:
            async with open_client(store, **options) as client:
                answer: httpx.Response = await client.get(path, headers=headers)
                return answer

    return get


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Authorization": "Bearer right"}, 200),
        ({"Authorization": "bearer right"}, 200),
        ({"Authorization": "BEARER  right"}, 200),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": "Bearer righ"}, 401),
        ({"Authorization": "Bearer "}, 401),
        ({}, 401),
    ],
)
async def test_with_a_token_only_who_has_it_is_served(
    ask: Callable[..., Any], headers: dict[str, str], status: int
) -> None:
    answer = await ask(token="right", headers=headers)

    assert answer.status_code == status


async def test_without_a_token_any_bearer_is_served_in_process(ask: Callable[..., Any]) -> None:
    assert (await ask(headers={"Authorization": "Bearer of-the-cli"})).status_code == 200


async def test_health_is_open_to_every_probe(ask: Callable[..., Any]) -> None:
    assert (await ask("/healthz", token="right", headers={"Host": "10.0.0.7:8411"})).status_code == 200


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8411", "127.0.0.1:1", "[::1]:8411", "mc.example.com"])
async def test_known_host_names_are_served(ask: Callable[..., Any], host: str) -> None:
    assert (await ask(trusted_hosts=["mc.example.com"], headers={"Host": host})).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "testserver", "localhost.evil.example", "127.0.0.1.evil", "evil@localhost:x", "", "["]
)
@pytest.mark.parametrize("path", ["/", "/api/v1/sessions"])
async def test_a_foreign_host_is_refused(ask: Callable[..., Any], path: str, host: str) -> None:
    answer = await ask(path, headers={"Host": host})

    assert (answer.status_code, answer.json()["error"]["kind"]) == (403, "foreign_host")


async def test_who_has_the_token_may_use_any_name_of_the_host(ask: Callable[..., Any]) -> None:
    headers = {"Host": "mc.team.example", "Authorization": "Bearer right"}

    assert (await ask(token="right", headers=headers)).status_code == 200


FOREIGN = [
    "http://evil.example",
    "null",
    "http://localhost.evil.example",
    "file://",
    "x",
    "http://localhost:3000",
    "http://127.0.0.1:1",
    "http://[",
    "https://localhost",
    "https://localhost:80",
    "xx://localhost",
    "localhost",
    "://localhost",
    "http://localhost/",
    "http://localhost:99999",
]


@pytest.mark.parametrize("origin", FOREIGN)
async def test_a_foreign_origin_is_refused(ask: Callable[..., Any], origin: str) -> None:
    answer = await ask(headers={"Origin": origin})

    assert (answer.status_code, answer.json()["error"]["kind"]) == (403, "foreign_origin")


@pytest.mark.parametrize(
    ("peer", "token", "headers", "kind"),
    [
        ("other", None, {}, "other_user"),
        ("other", "right", {}, "other_user"),
        ("other", "right", {"Authorization": "Bearer right"}, None),
        ("remote", "right", {}, "no_token"),
        ("remote", None, {}, "no_token"),
        ("unknown", "right", {}, "no_token"),
        ("unknown", None, {}, "no_token"),
        ("same", "right", {}, None),
        ("same", "right", {"Forwarded": "for=203.0.113.5"}, "no_token"),
    ],
)
async def test_who_is_at_the_other_end_decides_without_a_token(
    peer: str, token: str | None, headers: dict[str, str], kind: str | None
) -> None:
    async def open_to_all(scope: Scope, receive: Receive, send: Send) -> None:
        await PlainTextResponse("in")(scope, receive, send)

    async def nobody(_: object) -> None:
        return None

    async def nobodys(_tenant: str, _hash: bytes) -> None:
        return None

    async def key() -> bytes:
        return b"key"

    async def one(_: str) -> object:
        return object()

    guard = Guard(
        open_to_all, login=Login(token, nobody, nobodys, key), find_receiver=one, open_share=nobody, trusted_hosts=()
    )

    async def from_network(scope: Scope, receive: Receive, send: Send) -> None:
        await guard({**scope, "state": {PEER: peer}}, receive, send)

    async with httpx.AsyncClient(transport=httpx.ASGITransport(from_network), base_url="http://localhost") as client:
        answer = await client.get("/", headers=headers)

    assert (answer.json()["error"]["kind"] if answer.status_code != 200 else None) == kind


NAMED = "10.9.8.7:8411"


@pytest.mark.parametrize(
    ("origin", "host", "status"),
    [
        ("http://10.9.8.7:8411", NAMED, 200),
        ("https://10.9.8.7:8411", NAMED, 200),
        ("http://10.9.8.7:9999", NAMED, 403),
        ("http://10.9.8.7", NAMED, 403),
        ("https://10.9.8.7", NAMED, 403),
        ("ftp://10.9.8.7:8411", NAMED, 403),
        ("http://10.9.8.7:80", "10.9.8.7", 200),
        ("https://10.9.8.7", "10.9.8.7", 200),
        ("http://10.9.8.7", "localhost", 403),
    ],
)
async def test_of_a_named_address_only_the_same_port_is_ours(
    ask: Callable[..., Any], origin: str, host: str, status: int
) -> None:
    answer = await ask(trusted_hosts=["10.9.8.7"], headers={"Host": host, "Origin": origin})

    assert answer.status_code == status


async def test_behind_a_proxy_with_a_certificate_a_page_that_came_in_is_ours(ask: Callable[..., Any]) -> None:
    headers = {"Host": "mc.team.example", "Origin": "https://mc.team.example", "Authorization": "Bearer right"}

    assert (await ask(token="right", headers=headers)).status_code == 200


LINK = {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}


@pytest.mark.parametrize(
    ("site", "headers", "method", "status"),
    [
        ("cross-site", {"Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"}, "GET", 403),
        ("same-site", {"Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "empty"}, "GET", 403),
        ("cross-site", {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"}, "GET", 403),
        ("cross-site", {}, "GET", 403),
        ("something-new", {}, "GET", 403),
        ("cross-site", LINK, "DELETE", 403),
        ("cross-site", LINK, "GET", 200),
        ("same-site", LINK, "GET", 200),
        ("same-origin", {"Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty"}, "GET", 200),
        ("none", LINK, "GET", 200),
    ],
)
async def test_a_browser_is_served_for_our_pages_and_for_links_to_them(
    open_client: Callable[..., Any], site: str, headers: dict[str, str], method: str, status: int
) -> None:
    with Store(":memory:") as store:
        async with open_client(store) as client:
            answer = await client.request(method, "/api/v1/sessions", headers={**headers, "Sec-Fetch-Site": site})

    assert answer.status_code == status


async def test_our_own_pages_are_served(ask: Callable[..., Any]) -> None:
    headers = {"Host": "127.0.0.1:8411", "Origin": "http://127.0.0.1:8411"}

    assert (await ask(headers=headers)).status_code == 200


@pytest.mark.parametrize("path", ["/api/v1/sessions", "/api/v1/nothing", "/metrics", "/healthz"])
async def test_what_is_no_page_may_not_be_made_one(ask: Callable[..., Any], path: str) -> None:
    headers = (await ask(path, headers={})).headers

    assert headers["content-security-policy"].startswith("default-src 'none'")
    assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/feed",
        "/sessions/s",
        "/sessions/s/event?id=e&raw=1",
        "/sessions/s/export.html",
        "/api/v1/sessions",
        "/api/v1/sessions/s/events",
        "/api/v1/search?q=words",
        "/api/v1/nothing",
        "/agents/sessions/s?ids=1",
        "/metrics",
        "/style.css",
    ],
)
async def test_no_cache_between_keeps_an_answer_for_somebody_else(
    client: httpx.AsyncClient, make_event: Callable[..., bytes], make_body: Callable[..., bytes], path: str
) -> None:
    body = make_body(make_event("e", data={"content": "words"}))
    await client.post("/agents/sessions/s/events", content=body)

    first = await client.get(path)
    again = await client.get(path, headers={"If-None-Match": first.headers.get("etag", "")})

    assert first.status_code == (404 if "nothing" in path else 200)
    assert again.status_code == (304 if "etag" in first.headers else first.status_code)
    for answer in (first, again):
        assert answer.headers["cache-control"] in ("private, no-cache", "no-store")
        assert answer.headers["vary"] == "Authorization, Cookie"


async def test_a_refusal_is_kept_by_no_cache_either(ask: Callable[..., Any]) -> None:
    headers = (await ask(token="right", headers={})).headers

    assert (headers["cache-control"], headers["vary"]) == ("private, no-cache", "Authorization, Cookie")
