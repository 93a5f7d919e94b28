"""The installed command on PostgreSQL: tables first, a server that is late, goes and comes back, and a moved store."""

import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.cli.program import command, environment, exporter
from tests.missioncontrol.postgres import PASSWORD, Server
from tests.missioncontrol.store_contract import event

pytestmark = [pytest.mark.fleet, pytest.mark.usefixtures("installed")]
PATIENCE = 60


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        yield server


@pytest.fixture
def settings(server: Server, own_home: Path) -> Path:
    """A settings file that names a file with the address of the store."""
    (own_home / "store.url").write_text(server.url("mc") + "\n")
    file = own_home / "exporter.toml"
    file.write_text(f'[receiver]\nstore_file = "{own_home}/store.url"\n')
    return file


@contextmanager
def serving(settings: Path) -> Iterator[httpx.Client]:
    line = command("mission-control", "serve", "--port", "0", "--config", str(settings))
    program = subprocess.Popen(line, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert program.stdout is not None
        url = program.stdout.readline().strip()
        with httpx.Client(base_url=url, headers={"Session-Exporter": "1"}, timeout=PATIENCE) as client:
            yield client
    finally:
        program.terminate()
        _, said = program.communicate(timeout=PATIENCE)
        assert PASSWORD not in said


def until(status: int, ask: Callable[[], httpx.Response]) -> httpx.Response:
    end = time.monotonic() + PATIENCE
    while (answer := ask()).status_code != status:
        assert time.monotonic() < end, answer.text
        time.sleep(0.05)
    return answer


def error_of(answer: httpx.Response) -> dict[str, Any]:
    error: dict[str, Any] = answer.json()["error"]
    return error


def test_a_server_that_is_away_at_the_start_and_later_is_waited_for(server: Server, settings: Path) -> None:
    server.migrated("mc")
    server.stop()
    batch = b'{"events":[' + event("e1") + b"]}"
    with serving(settings) as client:
        assert client.get("/healthz").status_code == 200
        away = client.get("/readyz")
        assert (away.status_code, error_of(away)["kind"]) == (503, "store_away")
        assert "Connection refused" in error_of(away)["message"]
        refused = client.post("/agents/sessions", json={"id": "s"})
        assert refused.status_code == 503
        assert int(refused.headers["Retry-After"]) > 0

        server.start()
        until(200, lambda: client.get("/readyz"))
        assert client.post("/agents/sessions", json={"id": "s"}).status_code == 200
        named = client.post("/agents/sessions/s/events", content=batch)
        assert named.json()["accepted"] == 1

        server.kill()
        until(503, lambda: client.get("/readyz"))
        assert client.post("/agents/sessions/s/events", content=batch).status_code == 503
        assert client.get("/", headers={"Accept": "text/html"}).status_code == 503
        server.start()
        again = until(200, lambda: client.post("/agents/sessions/s/events", content=batch))
        assert (again.json()["accepted"], again.json()["duplicates"], again.json()["ack"]["count"]) == (0, 1, 1)
        store = "Session-Exporter-Store"
        assert again.headers.get(store) == named.headers.get(store)


def test_tables_are_made_by_a_command_that_serve_names(server: Server, settings: Path) -> None:
    server.new_database("mc")
    more = ("--config", str(settings))

    refused = exporter("mission-control", "serve", "--port", "0", *more)
    made = [exporter("mission-control", "migrate", *more) for _ in range(2)]

    assert refused.returncode == 3
    assert "exporter mission-control migrate --store URL" in refused.stderr
    assert [(done.returncode, done.stdout.strip()) for done in made] == [(0, "version 0 → 3"), (0, "already version 3")]
    token = exporter("mission-control", "token", "create", "anna", *more)
    assert token.stdout.startswith("xmc_")
    with serving(settings) as client:
        listed = client.get("/api/v1/sessions", headers={"Authorization": f"Bearer {token.stdout.strip()}"})
        assert listed.json()["sessions"] == []


def test_a_password_in_an_argument_is_warned_of_and_not_printed(server: Server) -> None:
    url = server.migrated("mc")

    listed = exporter("mission-control", "token", "list", "--store", url)
    server.stop()
    away = exporter("mission-control", "token", "list", "--store", url)
    shown = exporter("config", "show", EXPORTER_RECEIVER__STORE=url)

    assert "password in an argument" in listed.stderr
    assert away.returncode == 3
    said = "".join(done.stdout + done.stderr for done in (listed, away, shown))
    assert PASSWORD not in said
    assert PASSWORD.replace(" ", "%20") not in said


def test_a_store_is_copied_from_a_file_to_a_server(server: Server, own_home: Path) -> None:
    url = server.migrated("mc")
    file = own_home / "mc.db"
    created = exporter("mission-control", "token", "create", "anna", "--store", str(file))

    done = exporter("mission-control", "copy", "--from", f"sqlite://{file}", "--to", url)
    listed = exporter("mission-control", "token", "list", "--store", url, "--json")
    nothing = exporter("mission-control", "copy", "--from", "sqlite:///nowhere.db", "--to", url)

    assert created.returncode == 0
    assert (done.returncode, done.stdout.strip()) == (0, "0 sessions with 0 events copied; all digests are equal")
    assert '"anna"' in listed.stdout
    assert (nothing.returncode, "does not exist" in nothing.stderr) == (2, True)
