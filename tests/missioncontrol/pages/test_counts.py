"""One of something is not said in the plural."""

from collections.abc import Callable

import httpx
import pytest

from exporter.missioncontrol.store.retention import Retention
from exporter.missioncontrol.store.sqlite.store import SqliteStore as Store
from tests.missioncontrol.conftest import Opener
from tests.missioncontrol.pages.test_pages import read

pytestmark = pytest.mark.anyio
Make = Callable[..., bytes]


async def test_health_says_one_event_one_retry_and_one_day(store: Store, open_client: Opener) -> None:
    async with open_client(store, retention=Retention(days_max=1)) as client:
        sink = {"name": "team", "retries": 1}
        await client.post("/agents/exporters/x", json={"host": "desk", "sinks": [sink], "quarantined": 1})

        text = " ".join((await read(client, "/health")).text.split())

    assert "1 event is quarantined on the machine where it was read and has not left it" in text
    assert "1 retry" in text
    assert "1 retries" not in text
    assert "Retention1 day" in text
    assert "1 days" not in text


async def test_a_timeline_says_one_message_one_line_one_file(
    client: httpx.AsyncClient, make_event: Make, make_body: Make
) -> None:
    compacted = {"preCompactionTokens": 9, "postCompactionTokens": 1, "messagesRemoved": 1}
    changes = {"linesAdded": 1, "linesRemoved": 0, "filesModified": ["a"]}
    events = [
        make_event("a", "session.compaction_complete", data=compacted),
        make_event("b", "session.shutdown", data={"codeChanges": changes}),
    ]
    await client.post("/agents/sessions/s/events", content=make_body(*events))

    text = (await read(client, "/sessions/s")).text

    for said in ("9 → 1 token", "1 message removed", "1 line added, 0 removed", "1 file"):
        assert said in text
    for said in ("1 tokens", "1 messages", "1 lines", "1 files"):
        assert said not in text
