"""Nothing of a deleted session stays in the unused parts of the database's pages, in whatever order things happened."""

import json
import random
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from exporter.missioncontrol.ingest import write_jobs
from exporter.missioncontrol.ingest.batch import read_elements, sort_out
from exporter.missioncontrol.store.port import Database
from exporter.missioncontrol.store.sqlite.store import SqliteStore as Store

NOW = "2026-11-18T10:00:00.000Z"
SESSIONS = 40


class Chance:
    """Fills and forgets sessions in an order that the seed decides; every text of a session holds its number."""

    def __init__(self, store: Store, seed: int) -> None:
        self.store = store
        self.random = random.Random(seed)
        self.gone: set[int] = set()
        self.ids: dict[int, list[str]] = {session: [] for session in range(SESSIONS)}

    def run(self) -> None:
        for session in range(SESSIONS):
            self.do(write_jobs.register, session, f"s{session}", NOW)
        for number in range(6):
            for session in self.shuffled():
                self.fill(session, number)
            for session in self.shuffled()[: SESSIONS // 10]:
                self.forget(session)
        for session in self.shuffled()[: SESSIONS // 4]:
            self.forget(session)

    def do(self, job: Callable[..., Any], session: int, *rest: Any) -> None:
        def run(database: Database) -> None:
            job(database, f"s{session}", *rest)

        self.store.do(run)

    def shuffled(self) -> list[int]:
        left = [session for session in self.ids if session not in self.gone]
        self.random.shuffle(left)
        return left

    def word(self, session: int, times_max: int = 1) -> str:
        return f"MARK{session:03}x{self.random.randrange(99999):05}" * self.random.randint(1, times_max)

    def fill(self, session: int, number: int) -> None:
        data: list[tuple[str, dict[str, Any]]] = [
            ("user.message", {"content": self.word(session, 80)}),
            (
                "permission.requested",
                {
                    "requestId": self.word(session, 3),
                    "permissionRequest": {"kind": "shell", "fullCommandText": self.word(session, 5)},
                },
            ),
            ("subagent.started", {"agentName": self.word(session), "toolCallId": self.word(session)}),
        ]
        if self.random.random() < 0.3:
            data.append(("tool.execution_complete", {"result": self.word(session) * self.random.randint(1300, 4000)}))
        known = self.ids[session]
        rewound = self.random.sample(known, 2) if known and self.random.random() < 0.15 else []
        events: list[dict[str, Any]] = [
            {"type": type, "id": self.word(session), "timestamp": NOW, "agentId": f"a{number}", "data": told}
            for type, told in data
        ]
        known += [event["id"] for event in events]
        body = json.dumps({"events": events, "rewound": rewound}).encode()
        self.do(write_jobs.store_batch, session, sort_out(read_elements(body), event_bytes_max=1 << 24), NOW)
        if self.random.random() < 0.4:
            rules = {"2026-11-18": {self.word(session): 1}}
            self.do(write_jobs.report_session, session, {"title": self.word(session, 9), "redactions": rules}, NOW)

    def forget(self, session: int) -> None:
        self.gone.add(session)
        self.do(write_jobs.forget_session, session, NOW)
        assert self.store.erase().result(30)


@pytest.mark.parametrize("seed", [1, 2, 21, 47, 48, 56, 66])
def test_nothing_of_deleted_sessions_is_left_between_the_others(store_path: Path, seed: int) -> None:
    with Store(store_path) as store:
        chance = Chance(store, seed)

        chance.run()

        files = b"".join(path.read_bytes() for path in store_path.parent.iterdir())
        found = {int(number) for number in re.findall(rb"(?i)MARK(\d{3})x", files)}
        (verdict,) = store.do(lambda database: database.execute("PRAGMA integrity_check").fetchone())
    assert verdict == "ok"
    assert found
    assert found.isdisjoint(chance.gone)


def test_looking_at_the_file_lets_no_other_program_take_the_log_away(store_path: Path) -> None:
    # Closing any file of a process ends all of its locks on it: whoever closes last then removes the log in use.
    with Store(store_path) as store:
        chance = Chance(store, 3)
        for session in range(2):
            chance.do(write_jobs.register, session, f"s{session}", NOW)
            chance.fill(session, 0)
        chance.forget(0)
        chance.fill(1, 1)
        log = store_path.with_name(store_path.name + "-wal")
        before = log.stat().st_ino
        read = (
            "import sqlite3, sys; d = sqlite3.connect(sys.argv[1]); d.execute('SELECT count(*) FROM events'); d.close()"
        )
        subprocess.run([sys.executable, "-c", read, store_path], check=True)

        assert log.stat().st_ino == before
        chance.fill(1, 2)
        with closing(sqlite3.connect(store_path)) as other:
            assert other.execute("SELECT count(*) FROM events").fetchone()[0] >= 9
