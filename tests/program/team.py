"""The real receiver: `exporter mission-control serve` as a process of its own, with a token."""

import json
import re
import signal
import sqlite3
import ssl
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import httpx

from tests.cli.program import command
from tests.program.session_files import event_id
from tests.program.waiting import PATIENCE_SECONDS, until

TOKEN: Final = "team-token-of-the-tests"


class Team:
    """A running receiver that can be stopped, tampered with and started again at the same address."""

    def __init__(
        self,
        directory: Path,
        environment: dict[str, str],
        certificate: tuple[Path, Path] | None = None,
        *,
        trusted: Path | None = None,
        host: str = "127.0.0.1",
    ) -> None:
        """`certificate` and its key serve https, which is asked with `trusted` as the authority."""
        directory.mkdir(parents=True)
        self.token_file = directory / "token"
        self.token_file.write_text(TOKEN + "\n")
        self.database = directory / "mission_control.db"
        self.directory = directory
        self.environment = environment
        self.port = 0
        self.host = host
        self.certificate = certificate
        context = ssl.create_default_context(cafile=trusted) if trusted else False
        self.client = httpx.Client(headers={"Authorization": f"Bearer {TOKEN}"}, timeout=30, verify=context)
        self.start()

    def start(self) -> None:
        """Serve, at the same port as before."""
        line = [
            "mission-control",
            "serve",
            "--host",
            self.host,
            "--port",
            str(self.port),
            "--token-file",
            str(self.token_file),
        ]
        line += ["--state-dir", str(self.directory)]
        if self.certificate is not None:
            line += ["--certificate", str(self.certificate[0]), "--key", str(self.certificate[1])]
        self.process = subprocess.Popen(
            command(*line),
            env=self.environment,
            cwd=self.directory,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            encoding="utf-8",
        )
        assert self.process.stdout is not None
        self.root = self.process.stdout.readline().strip().rstrip("/")
        self.port = int(self.root.rpartition(":")[2])
        self.url = f"{self.root}/agents"

    def stop(self) -> None:
        """End the process; everything it said it stored is in the database file."""
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=90)

    def close(self) -> None:
        """Stop for good."""
        self.client.close()
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate(timeout=90)

    def get(self, path: str) -> Any:
        """The JSON answer to a GET."""
        return self.client.get(self.root + path).raise_for_status().json()

    def count(self, session: str) -> int:
        """How many events it shows of a session."""
        answer = self.client.get(f"{self.root}/api/v1/sessions/{session}/digest")
        return 0 if answer.status_code == 404 else int(answer.raise_for_status().json()["count"])

    def duplicates(self) -> int:
        """How many events were sent although they were here already."""
        text = self.client.get(f"{self.root}/metrics").raise_for_status().text
        found = re.search(r"^exporter_receiver_events_duplicate_total (\d+)", text, re.MULTILINE)
        assert found is not None
        return int(found[1])

    def wait_for(self, session: str, lines: Sequence[bytes], *, seconds: float = PATIENCE_SECONDS) -> None:
        """Wait until it holds as many events as there are lines and the last one of them."""
        last = event_id(lines[-1]) if lines else None
        path = f"{self.root}/api/v1/sessions/{session}/digest"

        def arrived() -> bool:
            answer = self.client.get(path)
            if answer.status_code != 200:
                return answer.status_code == 404 and not lines
            ack = answer.json()
            return bool(ack["count"] == len(lines) and ack["last_event_id"] == last)

        what = f"{len(lines)} events of {session} at the team's receiver, which has {self.count(session)}"
        until(arrived, what, seconds=seconds)

    def assert_holds(self, session: str, lines: Sequence[bytes]) -> None:
        """Read the session page by page as a program does, and compare every byte of every page with the lines."""
        start, after = 0, ""
        while True:
            path = f"/api/v1/sessions/{session}/events?limit=500{after}"
            page = self.client.get(self.root + path).raise_for_status().content
            body, _, rest = page.rpartition(b',"next":')
            following = json.loads(rest.removesuffix(b"}"))
            count = self._page_size(lines, start, following)
            wanted = b'{"events":[' + b",".join(lines[start : start + count]) + b"]"
            assert body == wanted, _difference(body, wanted, session)
            start += count
            if following is None:
                assert start == len(lines), f"{session}: {start} of {len(lines)} events"
                return
            after = f"&after={following}"

    @staticmethod
    def _page_size(lines: Sequence[bytes], start: int, following: str | None) -> int:
        if following is None:
            return len(lines) - start
        needle = f'"{following}"'.encode()
        for number in range(start, len(lines)):
            if needle in lines[number] and event_id(lines[number]) == following:
                return number - start + 1
        raise AssertionError(f"the receiver has {following}, which is not in the file or not there")

    def tamper(self, change: Callable[[sqlite3.Connection], object]) -> None:
        """Change the database behind the receiver's back, while it is stopped."""
        self.stop()
        connection = sqlite3.connect(self.database)
        try:
            with connection:
                change(connection)
        finally:
            connection.close()
        self.start()


def _difference(got: bytes, wanted: bytes, session: str) -> str:
    place = next((n for n, (a, b) in enumerate(zip(got, wanted, strict=False)) if a != b), min(len(got), len(wanted)))
    around = slice(max(0, place - 150), place + 150)
    return f"{session} differs at byte {place} of a page:\n got    {got[around]!r}\n wanted {wanted[around]!r}"
