"""What events, reports and requests say stays text: no element, attribute or address is ever made of it."""

import ast
import json
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from exporter.missioncontrol import pages
from exporter.missioncontrol.pages.timeline.wording import table
from exporter.missioncontrol.store import tokens
from exporter.missioncontrol.store.sqlite.store import SqliteStore as Store
from exporter.sources.event_types import KNOWN
from tests.missioncontrol.pages.test_pages import DEMO

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
Make = Callable[..., bytes]

PAYLOADS: Final = (
    "\"'><script>alert(1)</script><img src=x onerror=alert(1)>",
    "</title></style></textarea></pre><svg onload=alert(1)>",
    "javascript:alert(1)",
    '`<b onmouseover=alert(1)>` **<i>** [REDACTED:<script>:00000000] [REDACTED:a"onclick=alert(1):00000000]',
    "```\n<script>alert(1)</script>\n```\n--><!--><![CDATA[<x onclick=alert(1)>]]>",
    "\u202e\u0000<\u0001script>\u2028</script \n><iframe srcdoc='<script>alert(1)</script>'>",
)
ALLOWED: Final = frozenset(
    [
        "a",
        "article",
        "aside",
        "b",
        "body",
        "button",
        "code",
        "dd",
        "details",
        "div",
        "dl",
        "dt",
        "em",
        "form",
        "h1",
        "h2",
        "head",
        "header",
        "html",
        "input",
        "kbd",
        "label",
        "li",
        "link",
        "main",
        "mark",
        "meta",
        "nav",
        "noscript",
        "ol",
        "p",
        "pre",
        "rect",
        "script",
        "section",
        "small",
        "span",
        "strong",
        "summary",
        "svg",
        "table",
        "tbody",
        "td",
        "th",
        "thead",
        "time",
        "title",
        "tr",
        "ul",
        "style",
    ]
)
ATTRIBUTES: Final = frozenset(
    [
        "action",
        "aria-current",
        "aria-hidden",
        "aria-label",
        "charset",
        "class",
        "content",
        "data-all",
        "data-call",
        "data-from",
        "data-key",
        "data-kind",
        "data-live",
        "data-name",
        "data-part",
        "data-session",
        "data-stop",
        "data-to",
        "data-took",
        "data-v",
        "datetime",
        "download",
        "height",
        "href",
        "http-equiv",
        "id",
        "lang",
        "method",
        "name",
        "placeholder",
        "preserveaspectratio",
        "rel",
        "role",
        "scope",
        "src",
        "tabindex",
        "title",
        "type",
        "value",
        "viewbox",
        "width",
        "x",
        "y",
    ]
)


class Skeleton(HTMLParser):
    """Counts elements and attributes, and collects addresses, text and attributes' values."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: Counter[str] = Counter()
        self.attributes: set[str] = set()
        self.addresses: list[str] = []
        self.said = ""
        self.script = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements[tag] += 1
        for name, value in attrs:
            self.attributes.add(name)
            self.said += value or ""
            if name in ("href", "src", "action", "content"):
                self.addresses.append(value or "")
        if tag == "script":
            self.script += 1
            assert dict(attrs) == {"src": "/script.js"}

    def handle_data(self, data: str) -> None:
        self.said += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment was made: {data[:80]}")


def types() -> Iterator[str]:
    """Every type that anything here knows, and one that nobody does."""
    known = {json.loads(line)["type"] for line in DEMO.read_bytes().splitlines()}
    yield from sorted(known.union(KNOWN, table().quiet, *table().stops.values(), ["nobody.knows"]))


def spoil(value: Any, payload: str) -> Any:
    """The value with every text in it replaced, and every object with one more field whose name is hostile."""
    if isinstance(value, str):
        return payload
    if isinstance(value, list):
        return [spoil(one, payload) for one in value]
    if isinstance(value, dict):
        return {**{name: spoil(one, payload) for name, one in value.items()}, payload: payload}
    return value


READERS: Final = ("text_of", "number_of", "inner")
FIELDS: Final = tuple(
    "content message error question reason title name toolName mcpToolName command description agentName"  # noqa: SIM905  short
    " agentDisplayName agentDescription agentType model warningType errorType infoType source summaryContent"
    " newModel previousModel newMode previousMode repository branch cwd copilotVersion selectedModel"
    " hookType shutdownType turnId reasoningText intention transformedContent deltaContent messagesRemoved eventCount"
    " preCompactionTokens postCompactionTokens exitCode messageId toolCallId totalToolCalls totalTokens"
    " durationMs".split()
)
NESTED: Final = {
    "arguments": {"command": "", "path": "", "old_str": "", "new_str": "", "prompt": "", "description": ""},
    "result": {"content": "", "detailedContent": "", "kind": ""},
    "kind": {"type": "", "shellId": "", "status": "", "displayName": "", "agentType": "", "agentId": ""},
    "context": {"repository": "", "branch": "", "cwd": ""},
    "permissionRequest": {"kind": "", "fullCommandText": "", "path": "", "toolName": "", "intention": ""},
    "usage": {"model": "", "inputTokens": "", "outputTokens": ""},
    "shellExecution": {"exitCode": ""},
    "codeChanges": {"linesAdded": 1, "linesRemoved": 1, "filesModified": [""]},
    "attachments": [{"displayName": "", "path": "", "type": ""}],
}


def keys(value: Any) -> Iterator[str]:
    """Every key in the value."""
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from keys(inner)
    yield from value if isinstance(value, dict) else ()


def test_every_field_that_a_page_reads_is_spoilt() -> None:
    """The readers of data name their fields; whoever adds one finds it missing here."""
    read: set[str] = set()
    table = Path(pages.__file__).parent / "timeline/wording.toml"
    rows = tomllib.loads(table.read_text(encoding="utf-8"))["notes"].values()
    patterns = [fact for row in rows for fact in row.get("facts", ())]
    for path in Path(pages.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in {*READERS, "fact"}:
                texts = [one.value for one in node.args if isinstance(one, ast.Constant) and isinstance(one.value, str)]
                patterns += texts if node.func.id == "fact" else ()
                read |= set(texts) if node.func.id in READERS else set()
    read |= {name for pattern in patterns for path in re.findall(r"\{([\w.]+)", pattern) for name in path.split(".")}

    assert len(read) > 50
    assert read - {*FIELDS, *keys(NESTED)} == set()


def spoilt(payload: str) -> list[bytes]:
    """An event of every type, with a payload in every field that any page reads, and of every demo event."""
    events = []
    for number, type in enumerate(types()):
        data = spoil({**dict.fromkeys(FIELDS, ""), **NESTED}, payload)
        data |= {"toolCallId": payload if number % 2 else f"call-{number}", "requestId": f"{payload}{number}"}
        data |= {"success": bool(number % 2), "messageId": payload}
        if type == "hook.end":
            data |= {"success": False, "error": {"message": payload}}
        event = {
            "type": type,
            "data": data,
            "id": f"{payload[:60]}-{number}",
            "timestamp": f"2026-11-18T10:00:00.{number:03}Z",
        }
        events.append(event if number % 3 else {**event, "agentId": f"{payload}-{number % 2}"})
    for number, line in enumerate(DEMO.read_bytes().splitlines()):
        event = json.loads(line)
        events.append(
            {**event, "id": f"{payload[:60]}+{number}", "timestamp": payload, "data": spoil(event["data"], payload)}
        )
    events.append(
        {"type": payload, "data": payload, "id": f"{payload[:60]}!", "timestamp": "20" + payload, "agentId": payload}
    )
    return [json.dumps(event).encode() for event in events]


PATHS: Final = (
    "/",
    "/feed",
    "/health",
    "/sessions/s",
    "/sessions/s?all=1",
    "/sessions/s/waterfall",
    "/sessions/s/forget",
)


@pytest.fixture(params=range(len(PAYLOADS)))
async def payload(request: pytest.FixtureRequest, client: httpx.AsyncClient, store: Store, make_body: Make) -> str:
    """One payload, stored everywhere that anything can be stored."""
    payload: str = PAYLOADS[request.param]
    events = spoilt(payload)
    for start in range(0, len(events), 100):
        answer = await client.post("/agents/sessions/s/events", content=make_body(*events[start : start + 100]))
        assert answer.status_code == 200, answer.text
    report = dict.fromkeys(("title", "repository", "branch", "host"), payload)
    masked = {"redactions": {"2026-11-18": {payload: 1}}}
    assert (await client.put("/agents/sessions/s", json={**report, "state": payload})).status_code == 400
    assert (await client.put("/agents/sessions/s", json={**report, **masked})).status_code == 200
    sink = {"name": payload, "lag_events": 5, "lag_seconds": 5.0, "last_error": payload}
    said = {"version": payload, "host": payload, "sinks": [sink], "quarantined": 3, "quarantine": {payload: 1}}
    await client.post("/agents/exporters/x", json=said)
    name = "".join(letter for letter in payload if letter.isprintable()).strip()[:100]
    token = store.do(lambda database: tokens.create(database, name, "now"))
    await client.post("/agents/exporters/y", json=said, headers={"Authorization": f"Bearer {token}"})
    shown = (await client.get("/api/v1/exporters")).json()["exporters"]
    assert name in [exporter.get("token") for exporter in shown], shown
    return payload


def check(content: str, what: str) -> Skeleton:
    skeleton = Skeleton()
    skeleton.feed(content)
    skeleton.close()
    assert set(skeleton.elements) <= ALLOWED, what
    assert skeleton.attributes <= ATTRIBUTES, what
    assert skeleton.script <= 1, what
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\u202a-\u202e]", content), what
    return skeleton


async def test_no_page_makes_anything_of_what_was_stored(client: httpx.AsyncClient, payload: str) -> None:
    for path in PATHS:
        answer = await client.get(path)

        assert answer.status_code == 200, (path, answer.text)
        skeleton = check(answer.text, path)
        local = [address for address in skeleton.addresses if not re.fullmatch(r"width=.*|light dark", address)]
        assert all(re.match(r"(/(?!/)|#)", address) for address in local), path


async def test_no_page_makes_anything_of_what_was_asked(client: httpx.AsyncClient, payload: str) -> None:
    asked = dict.fromkeys(("q", "type", "status", "agent"), payload)
    for path in ("/", "/feed", "/sessions/s"):
        answer = await client.get(path, params=asked)

        assert answer.status_code == 200
        check(answer.text, path)
    refused = await client.get("/", params={"state": payload}, headers={"accept": "text/html"})
    assert refused.status_code == 400
    check(refused.text, "a state that is none")
    for path in ("/sessions/s/event", "/sessions/s/next", "/sessions/s"):
        answer = await client.get(path, params={"id": payload, "kind": payload, "at": payload})
        assert answer.status_code in (400, 404)
        assert answer.headers["content-type"] == "application/json"


async def test_every_event_can_be_looked_at_and_exported(client: httpx.AsyncClient, payload: str) -> None:
    for form in ("html", "md", "jsonl"):
        answer = await client.get(f"/sessions/s/export.{form}")
        assert answer.status_code == 200
        if form == "html":
            skeleton = check(re.sub("<style>.*?</style>", "", answer.text, flags=re.DOTALL), form)
            assert not skeleton.script
            assert answer.text.count("<style>") == 1
    for link in re.findall(r'href="(/sessions/s/event\?[^"]+)"', (await client.get("/sessions/s?all=1")).text)[::9]:
        answer = await client.get(link.replace("&amp;", "&"))
        assert answer.status_code == 200
        check(answer.text, link)


async def test_markdown_holds_no_html_of_theirs(client: httpx.AsyncClient, payload: str) -> None:
    outside: list[str] = []
    fence = ""
    for line in (await client.get("/sessions/s/export.md")).text.splitlines():
        ticks = re.match("`{3,}", line)
        if ticks and (not fence or line.strip() == fence):
            fence = "" if fence else ticks[0]
        elif not fence:
            outside.append(re.sub("(`+) .*? \\1(?!`)", "", line))

    assert not [line for line in outside if re.search(r"(?<!\\)<\w", line)]


@pytest.mark.parametrize("path", ["/sessions/..%2f..%2fetc", "/sessions/%00", "/sessions/a%2fb", "/sessions/<b>"])
async def test_an_id_that_is_none_is_refused(client: httpx.AsyncClient, path: str) -> None:
    for below in ("", "/event?id=a", "/next?kind=error", "/waterfall", "/export.md"):
        assert (await client.get(path + below)).status_code in (400, 404)
