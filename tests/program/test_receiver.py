"""The receiver alone, as a team starts it."""

import os
import signal
import socket
import subprocess

import pytest

from tests.cli.program import command
from tests.program.driver import Machine
from tests.program.waiting import until


@pytest.mark.parametrize("form", ["sqlite:///{}", "{}"], ids=["an address", "a path"])
def test_the_store_is_kept_where_store_says(machine: Machine, form: str) -> None:
    place = machine.root / "srv"
    place.mkdir()
    file = place / "mc.db"
    store = form.format(str(file).lstrip("/") if form.startswith("sqlite") else file)
    line = command("mission-control", "serve", "--port", "0", "--store", store)
    process = subprocess.Popen(
        line, env=machine.environment, cwd=place, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    try:
        assert process.stdout is not None
        url = process.stdout.readline()
        assert url.startswith(b"http://127.0.0.1:")
        made = {path.name for path in place.iterdir()}
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=90)

    assert "mc.db" in made
    names = ("mc.db", "mc-search.db")
    assert made <= {name + suffix for name in names for suffix in ("", "-wal", "-shm", "-journal")}


def test_a_pipe_as_its_token_file_ends_at_once(machine: Machine) -> None:
    os.mkfifo(machine.root / "pipe")

    ended = machine.exporter("mission-control", "serve", "--token-file", str(machine.root / "pipe"), timeout=90)

    assert ended.returncode == 2
    assert str(machine.root / "pipe") in ended.stderr


def test_on_every_address_it_says_which_one_other_machines_open(machine: Machine) -> None:
    token = machine.root / "token"
    token.write_text("team-token-of-the-tests")
    line = command("mission-control", "serve", "--port", "0", "--host", "0.0.0.0", "--token-file", str(token))
    said = machine.root / "said"
    with said.open("wb") as errors:
        process = subprocess.Popen(line, env=machine.environment, stdout=subprocess.PIPE, stderr=errors)
    try:
        assert process.stdout is not None
        port = process.stdout.readline().decode().strip().rstrip("/").rpartition(":")[2]
        until(lambda: said.read_bytes().endswith(b"\n"), "the address by name")
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=90)

    assert f"http://{socket.gethostname()}:{port}/" in said.read_text()
