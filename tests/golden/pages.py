"""Groups `pages` and `api`: every page and every answer of a receiver that was filled with every capture.

The receiver runs as `mission-control serve`; it is filled by a plain client, session by session, so that nothing
depends on how an exporter takes turns.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlencode, urljoin, urlsplit

from tests.golden.captures import Capture
from tests.golden.databases import columns, pin_store
from tests.golden.facts import facts_of
from tests.golden.machine import Client, Machine, Work
from tests.golden.store import Goldens, Kind

PAGES, API, UPLOADS, ASSETS = "pages", "api", "uploads", "assets"
_BATCH: Final = 100
_EVENTS_SHOWN: Final = 6
_LINKS_PER_SESSION: Final = 40
_HEADERS: Final = (
    "allow", "cache-control", "content-disposition", "content-security-policy", "content-type",
    "cross-origin-opener-policy", "cross-origin-resource-policy", "location",
    "referrer-policy", "retry-after", "vary", "www-authenticate", "x-accel-buffering", "x-content-type-options",
)  # fmt: skip
_BROWSER: Final = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
_OURS: Final = {"Session-Exporter": "0.1.0", "Content-Type": "application/json"}
_THEIRS: Final = {"Content-Type": "application/json"}
TOKEN: Final = "the-token-of-the-golden-receiver"


class Asking:
    """Asks a receiver and keeps what it answers, each address once; `groups` begins the names of their groups."""

    def __init__(self, goldens: Goldens, client: Client, label: str, groups: str = "") -> None:
        self._goldens, self._client, self._label, self._groups = goldens, client, label, groups
        self._asked: set[tuple[str, str]] = set()

    def ask(
        self,
        group: str,
        path: str,
        *,
        method: str = "GET",
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        note: str = "",
    ) -> list[str]:
        """Keep the answer; return where the links of a page lead, in order."""
        name = f"{self._label}{method} {path}{note}"
        if (group, name) in self._asked:
            return []
        self._asked.add((group, name))
        given = headers if headers is not None else _BROWSER if group == PAGES else {}
        status, told, content = self._client.ask(method, path, body, given)
        head = [f"status\t{status}", *(f"header\t{name}: {told[name]}" for name in _HEADERS if name in told)]
        if "set-cookie" in told:
            head.append("header\tset-cookie: " + "; ".join(["(a cookie)", *told["set-cookie"].split("; ")[1:]]))
        kind, links = _kind_of(told.get("content-type", ""), group), list[str]()
        if kind == "facts":
            facts = facts_of(content.decode("utf-8", "backslashreplace"))
            links = [fact.partition("\t")[2] for fact in facts if fact.startswith("href\t")]
            content = "\n".join(facts).encode()
        elif group in (API, ASSETS) and "etag" in told:
            head.append(f"header\tetag: {told['etag']}")
        self._goldens.put(self._groups + group, name, "\n".join(head).encode() + b"\n\n" + content, kind)
        return [urljoin(path, link) for link in links]


def _kind_of(content_type: str, group: str) -> Kind:
    if content_type.startswith("text/html"):
        return "facts"
    return "text" if group == PAGES and content_type.startswith("text/") else "bytes"


def fill(client: Client, captures: Sequence[Capture]) -> Iterator[tuple[str, bytes]]:
    """Upload every capture; yield what was answered. Some sessions are reported on, rewound, or wait for somebody."""
    for number, capture in enumerate(captures):
        headers = _OURS if number % 3 == 0 else _THEIRS
        answers = [_post(client, "/agents/sessions", {"id": capture.id, "agent_task_id": capture.id}, headers)]
        lines = readable(capture.lines())
        path = f"/agents/sessions/{capture.id}"
        for first in range(0, len(lines), _BATCH):
            body = b'{"events":[' + b",".join(lines[first : first + _BATCH]) + b"]}"
            answers.append(_told(client.ask("POST", f"{path}/events", body, headers)))
        if number % 5 == 0 and len(lines) > 3:
            gone = [json.loads(line)["id"] for line in lines[-2:]]
            answers.append(_post(client, f"{path}/events", {"events": [], "rewound": gone}, _OURS))
        if number % 2 == 0:
            answers.append(_send(client, "PUT", path, _report(number), _OURS))
        if number % 4 == 0:
            live = {"type": "permission.requested", "id": f"wait-{number}", "parentId": None, "ephemeral": True,
                    "timestamp": "2026-11-19T11:59:00.000Z",
                    "data": {"requestId": f"r{number}", "permissionRequest": {"kind": "shell"}}}  # fmt: skip
            answers.append(_post(client, f"{path}/live", {"events": [live]}, _OURS))
        answers.append(_told(client.ask("GET", f"{path}?ids=1")))
        yield capture.name, b"\n".join(answers)
    for number in range(3):
        yield (
            f"exporter {number}",
            _post(client, f"/agents/exporters/exporter-{number}", _exporter(number, captures), _OURS),
        )


def readable(lines: Iterable[bytes]) -> list[bytes]:
    """The lines that may stand in a JSON body."""
    found = []
    for line in lines:
        try:
            if isinstance(json.loads(line), dict):
                found.append(line)
        except ValueError:
            continue
    return found


def _report(number: int) -> dict[str, Any]:
    states = ("working", "idle", "needs_attention", "ended", "crashed")
    return {
        "title": f"Title <{number}> & more",
        "repository": f"owner/repository-{number % 3}",
        "branch": "main",
        "host": f"host-{number % 4}",
        **({"state": states[number // 2 % 5]} if number % 6 == 0 else {}),
        "redactions": {"2026-11-18": {"github-pat-classic": number}, "2026-11-17": {"jwt": 1, "own.rule": number + 1}},
    }


def _exporter(number: int, captures: Sequence[Capture]) -> dict[str, Any]:
    return {
        "version": f"0.{number}.0",
        "host": f"host-{number}",
        "sinks": [
            {"name": "mission_control", "lag_events": number * 7, "lag_seconds": number * 1.5, "last_error": None,
             "retries": number},
            {"name": "otel:traces", "lag_events": 0, "lag_seconds": 0.0, "last_error": "refused <401>", "retries": 3},
        ],
        "quarantined": number * 2,
        "quarantine": {"not_json": number, "refused_400": number} if number else {},
        "behind": {captures[number].id: {"lag_events": number + 1, "lag_seconds": 2.5}},
    }  # fmt: skip


def _post(client: Client, path: str, body: object, headers: Mapping[str, str]) -> bytes:
    return _send(client, "POST", path, body, headers)


def _send(client: Client, method: str, path: str, body: object, headers: Mapping[str, str]) -> bytes:
    return _told(client.ask(method, path, json.dumps(body).encode(), headers))


def _told(answer: tuple[int, Mapping[str, str], bytes]) -> bytes:
    status, headers, body = answer
    return b"%d %s\n" % (status, headers.get("content-type", "").encode()) + body


def write_pages(goldens: Goldens, work: Work, captures: Sequence[Capture]) -> None:
    """Fill a receiver and keep all that it shows; then what happens when sessions are forgotten."""
    machine, port = Machine(work, "showing"), work.port + 3
    store = machine.root / "pages.db"
    with machine.serving(store, port):
        pass
    pin_store(store)
    with machine.serving(store, port):
        client = Client(port)
        for name, answers in fill(client, captures):
            goldens.put(UPLOADS, name, answers)
        asking = Asking(goldens, client, "")
        show_api(asking, captures)
        show_pages(asking, captures)
        _refuse(Asking(goldens, client, "refused "), captures)
        _forget(Asking(goldens, client, "forgotten "), captures)
        client.close()
    goldens.put(API, "columns of the store", columns(store))
    _enter(goldens, machine, store)


def show_pages(asking: Asking, captures: Sequence[Capture]) -> None:
    """Ask for every kind of page, of every session, and for where their links lead."""
    states = ("working", "idle", "needs_attention", "ended", "crashed")
    for path in (
        *(
            "/",
            "/?q=hello",
            "/?q=script",
            "/?q=no-such-word",
            "/?q=%22",
            "/?part=1",
            "/feed",
            "/feed?part=1",
            "/health",
        ),
        *("/health?part=1", "/?cursor=nothing", "/feed?cursor=nothing", "/nowhere", "/enter", "/?state=nothing"),
        *(f"/?state={state}" for state in states),
        *(f"/?state={state}&q=hello&part=1" for state in states),
        *(f"/feed?status={status}" for status in ("waiting", "answered", "failed", "nothing")),
    ):
        for link in asking.ask(PAGES, path):
            if _is_list(link):
                asking.ask(PAGES, link)
    for path in ("/style.css", "/script.js", "/icon.svg"):
        asking.ask(ASSETS, path)
    for capture in captures:
        _show_session(asking, capture)


def _is_list(link: str) -> bool:
    return link.startswith(("/?", "/feed")) and "#" not in link


def _show_session(asking: Asking, capture: Capture) -> None:
    path = f"/sessions/{capture.id}"
    views = ("", "?all=1", "?model=1", "?main=1", "?edge=start", "?edge=first", "?part=1", "?part=1&side=1", "?q=hello",
             "?q=error", "?all=1&part=1", "?agent=nobody", "?at=nothing", "?after=nothing&part=1")  # fmt: skip
    links: list[str] = []
    for view in views:
        links += asking.ask(PAGES, path + view)
    for form in ("html", "md", "jsonl", "pdf"):
        asking.ask(PAGES, f"{path}/export.{form}")
    for kind in ("error", "note", "nothing"):
        asking.ask(PAGES, f"{path}/next?kind={kind}")
        asking.ask(PAGES, f"{path}/next?kind={kind}&back=1")
    links += asking.ask(PAGES, f"{path}/waterfall")
    asking.ask(PAGES, f"{path}/forget")
    asking.ask(PAGES, f"{path}/event?id=nothing")
    for event in _sample(capture):
        id = quote(event, safe="")
        for view in (f"?at={id}", f"?from={id}&part=1", f"?before={id}", f"?after={id}", f"?after={id}&few=1&part=1",
                     f"?from={id}&few=1&part=1", f"?before={id}&all=1&part=1"):  # fmt: skip
            asking.ask(PAGES, path + view)
        for place in (f"/event?id={id}", f"/event?id={id}&raw=1", f"/waterfall?at={id}"):
            asking.ask(PAGES, path + place)
        for kind in ("error", "note"):
            asking.ask(PAGES, f"{path}/next?kind={kind}&after={id}")
    wanted = [link.partition("#")[0] for link in dict.fromkeys(links) if link.startswith(path)]
    for link in list(dict.fromkeys(wanted))[:_LINKS_PER_SESSION]:
        asking.ask(PAGES, urlsplit(link)._replace(scheme="", netloc="").geturl())


def _sample(capture: Capture) -> list[str]:
    """Ids of some events, the first and the last among them."""
    ids = [event["id"] for line in readable(capture.lines()) if isinstance((event := json.loads(line)).get("id"), str)]
    step = max(1, len(ids) // _EVENTS_SHOWN)
    return list(dict.fromkeys([*ids[::step], *ids[-1:]]))


def show_api(asking: Asking, captures: Sequence[Capture]) -> None:
    """Ask everything that programs may ask."""
    api = "/api/v1"
    lists = (
        *("/sessions", "/sessions?limit=3", "/sessions?limit=0", "/sessions?limit=x", "/sessions?cursor=x"),
        *(f"/sessions?state={one}" for one in ("working", "idle", "needs_attention", "ended", "crashed", "nothing")),
        *("/sessions?q=hello", "/sessions?q=Title", "/sessions?since=2026-11-18", "/sessions?since=nothing"),
        *("/notifications", "/notifications?limit=2", "/notifications?status=waiting", "/notifications?type=wait"),
        *("/notifications?type=agent_completed", f"/notifications?session={captures[0].id}", "/notifications?cursor=x"),
        *(f"/redactions?by={by}" for by in ("rule", "session", "day", "rule,day", "rule,session,day", "nothing")),
        *("/exporters", "/search", "/search?q=", "/search?q=hello&limit=2", "/search?q=hello&cursor=x"),
        *(f"/search?{urlencode({'q': q})}" for q in _QUERIES),
        *(f"/search?{urlencode({'q': 'the', 'session': one.id})}" for one in captures[::5]),
        "/nothing",
    )
    for path in lists:
        asking.ask(API, api + path)
    for path in ("/healthz", "/readyz"):
        asking.ask(API, path)
    for capture in captures:
        session = f"{api}/sessions/{capture.id}"
        for path in (
            *("", "/digest", "/tree", "/trace", "/events", "/events?limit=3", "/events?large=omit", "/events?about=1"),
            *("/events?visible=model", "/events?visible=screen", "/events?visible=nothing", "/events?limit=x"),
            *("/events?type=user.message", "/events?agent=nobody", "/events?after=nothing", "/events/nothing"),
            *(f"/events?after={quote(event, safe='')}&limit=5" for event in _sample(capture)),
            *(f"/events/{quote(event, safe='')}" for event in _sample(capture)),
        ):
            asking.ask(API, session + path)


_QUERIES: Final = (
    "hello", "HELLO", "bash", "error -hello", '"exit code"', "type:user.message", "session", "x y z", "été", "<script>",
    "rep* ", "a", "failed OR error", "(", "NEAR(a b)", "-hello", "😀",
)  # fmt: skip


def _refuse(asking: Asking, captures: Sequence[Capture]) -> None:
    """Ask what is refused: bad ids, methods, bodies, hosts and origins."""
    id = captures[0].id
    for path in (
        "/api/v1/sessions/unknown",
        "/api/v1/sessions/%20",
        "/sessions/unknown",
        "/sessions/%20",
        "/agents/nothing",
    ):
        asking.ask(PAGES, path)
        asking.ask(API, path)
    for method, path in (("POST", "/"), ("PUT", "/feed"), ("POST", "/api/v1/sessions"), ("DELETE", "/agents/sessions")):
        asking.ask(API, path, method=method)
    for note, body in (
        ("empty", b""), ("no json", b"{"), ("no object", b"[]"), ("no id", b'{"events":[{"type":"x"}]}'),
        ("bad event", b'{"events":[1]}'), ("bad rewound", b'{"events":[],"rewound":1}'), ("other", b'{"a":1}'),
    ):  # fmt: skip
        asking.ask(API, f"/agents/sessions/{id}/events", method="POST", body=body, headers=_OURS, note=f" {note}")
        asking.ask(API, f"/agents/sessions/{id}", method="PUT", body=body, headers=_OURS, note=f" {note}")
        asking.ask(API, "/agents/exporters/one", method="POST", body=body, headers=_OURS, note=f" {note}")
    asking.ask(API, f"/agents/sessions/{id}", method="PUT", body=b"{}", headers=_THEIRS, note=" not declared")
    asking.ask(API, f"/agents/sessions/{id}/commands")
    for note, headers in (
        ("host", {"Host": "evil.test"}), ("origin", {"Origin": "http://evil.test"}),
        ("site", {"Sec-Fetch-Site": "cross-site"}), ("forwarded", {"X-Forwarded-For": "10.0.0.1"}),
        ("token", {"Authorization": "Bearer nothing"}),
    ):  # fmt: skip
        asking.ask(API, "/api/v1/exporters", headers=headers, note=f" {note}")
        asking.ask(PAGES, "/health", headers={**_BROWSER, **headers}, note=f" {note}")


def _forget(asking: Asking, captures: Sequence[Capture]) -> None:
    """Forget two sessions, by the page and by the API, and look what is left."""
    by_page, by_api = captures[1].id, captures[2].id
    asking.ask(
        PAGES, f"/sessions/{by_page}/forget", method="POST", headers={**_BROWSER, "Origin": "null"}, note=" elsewhere"
    )
    asking.ask(PAGES, f"/sessions/{by_page}/forget", method="POST")
    asking.ask(API, f"/api/v1/sessions/{by_api}", method="DELETE")
    for id in (by_page, by_api):
        asking.ask(PAGES, f"/sessions/{id}")
        asking.ask(API, f"/api/v1/sessions/{id}")
        asking.ask(API, f"/agents/sessions/{id}")
        body = json.dumps({"id": id}).encode()
        asking.ask(API, "/agents/sessions", method="POST", body=body, headers=_OURS, note=f" {id}")
        restore = json.dumps({"id": id, "restore": True}).encode()
        asking.ask(API, "/agents/sessions", method="POST", body=restore, headers=_OURS, note=f" {id} restore")
    for path in ("/api/v1/sessions", "/api/v1/redactions", "/api/v1/search?q=hello"):
        asking.ask(API, path)
    for path in ("/", "/feed", "/health"):
        asking.ask(PAGES, path)


def _enter(goldens: Goldens, machine: Machine, store: Path) -> None:
    """Come in to a receiver that has a token."""
    token_file = machine.root / "token"
    token_file.write_text(TOKEN)
    port = machine.work.port + 4
    with machine.serving(store, port, "--token-file", str(token_file)):
        client = Client(port)
        asking = Asking(goldens, client, "token ")
        for path in ("/", "/health", "/enter", "/enter?once=nothing", "/nowhere"):
            asking.ask(PAGES, path, headers={**_BROWSER, "X-Forwarded-For": "10.0.0.1"}, note=" without")
        form = {**_BROWSER, "Content-Type": "application/x-www-form-urlencoded"}
        asking.ask(PAGES, "/enter", method="POST", body=b"token=wrong", headers=form, note=" wrong")
        asking.ask(PAGES, "/enter", method="POST", body=f"token={TOKEN}".encode(), headers=form, note=" right")
        for path in ("/api/v1/exporters", "/agents/sessions/unknown"):
            for note, headers in (
                ("none", {"X-Forwarded-For": "10.0.0.1"}),
                ("wrong", {"X-Forwarded-For": "10.0.0.1", "Authorization": "Bearer wrong"}),
                ("right", {"X-Forwarded-For": "10.0.0.1", "Authorization": f"Bearer {TOKEN}"}),
            ):
                asking.ask(API, path, headers=headers, note=f" {note}")
        client.close()
