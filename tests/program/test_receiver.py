"""The receiver alone, as a team starts it."""

import signal
import subprocess

import pytest

from tests.cli.program import command
from tests.program.driver import Machine


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
        process.communicate(timeout=20)

    assert "mc.db" in made
    names = ("mc.db", "mc-search.db")
    assert made <= {name + suffix for name in names for suffix in ("", "-wal", "-shm", "-journal")}
