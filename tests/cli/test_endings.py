"""How a command ends: exit codes, error texts, suggestions, a closed pipe, Ctrl-C."""

import json
import os
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from exporter.__main__ import INTERRUPTED
from exporter.errors import Exit
from exporter.state.lock import owned
from tests.cli.program import TIMEOUT_SECONDS, command, environment, exporter


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("sesions list", "did you mean sessions?"),
        ("stauts", "did you mean status?"),
        ("sessions lst", "did you mean list?"),
        ("quarantine replya 1", "did you mean replay?"),
        ("backfill --sesion x", "did you mean --session?"),
        ("--jsn status", "did you mean --json?"),
        ("status --stat-dir=x", "did you mean --state-dir?"),
        ("--verison", "did you mean"),
        ("xyzzy", "choose up, run, backfill"),
        ("sessions", "choose list, show or tail"),
    ],
)
def test_an_unknown_word_ends_with_2_and_the_nearest_one(line: str, says: str) -> None:
    answer = exporter(*line.split())

    assert answer.returncode == Exit.USAGE
    assert says in answer.stderr
    assert answer.stdout == ""


@pytest.mark.parametrize(
    "line",
    [
        "backfill",
        "backfill --all --since 7d",
        "backfill --since sometime",
        "verify",
        "up --port 70000",
        "up --days -3",
        "sessions show",
        "sessions list --state asleep",
        "quarantine replay",
        "quarantine show three",
        "status extra",
        "status --config",
        "backfill --all --sink --dry-run",
        "status --state-dir --no-color",
    ],
)
def test_what_cannot_be_read_ends_with_2_and_a_hint(line: str) -> None:
    answer = exporter(*line.split())

    assert answer.returncode == Exit.USAGE
    assert answer.stderr.startswith("error: ")
    assert "hint: " in answer.stderr


@pytest.mark.parametrize("line", ["--json nonsense", "backfill --json", "status --json --nonsense"])
def test_with_json_an_error_is_a_document_on_stdout(line: str) -> None:
    answer = exporter(*line.split())

    document = json.loads(answer.stdout)
    assert list(document) == ["error"]
    assert list(document["error"]) == ["kind", "message", "hint"]
    assert document["error"]["kind"] == "usage"
    assert (answer.returncode, answer.stderr) == (Exit.USAGE, "")


def test_a_wrong_setting_ends_with_3_and_names_file_line_and_key(tmp_path: Path) -> None:
    file = tmp_path / "exporter.toml"
    file.write_text("# mine\nhistory_dayz = 3\n")

    answer = exporter("config", "check", str(file))

    assert answer.returncode == Exit.CONFIGURATION
    assert f"{file}:2" in answer.stderr
    assert "history_dayz" in answer.stderr
    assert "history_days" in answer.stderr.partition("hint:")[2]


def test_a_wrong_setting_with_json_is_of_the_kind_configuration() -> None:
    answer = exporter("config", "show", "--json", EXPORTER_HISTORY_DAYS="many")

    error = json.loads(answer.stdout)["error"]
    assert answer.returncode == Exit.CONFIGURATION
    assert error["kind"] == "configuration"
    assert "EXPORTER_HISTORY_DAYS" in error["message"]


def test_a_reader_that_has_gone_is_not_an_error() -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    try:
        answer = subprocess.run(
            command("config", "example"),
            env=environment(),
            stdout=write_end,
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
        )
    finally:
        os.close(write_end)

    assert (answer.returncode, answer.stderr) == (Exit.DONE, b"")


@pytest.mark.parametrize("module", ["exporter.cli.main", "click", "config.settings", "msgspec", "exporter.app"])
def test_ctrl_c_while_it_still_imports_ends_with_130_and_no_word(tmp_path: Path, module: str) -> None:
    (tmp_path / "sitecustomize.py").write_text(_CTRL_C_AT_IMPORT)
    path = os.pathsep.join((str(tmp_path), environment()["PYTHONPATH"]))

    answer = exporter("status", PYTHONPATH=path, CTRL_C_AT=module)

    assert (answer.returncode, answer.stdout, answer.stderr) == (INTERRUPTED, "", "")


_CTRL_C_AT_IMPORT = """
import os, signal, sys

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ["CTRL_C_AT"]:
            signal.raise_signal(signal.SIGINT)

sys.meta_path.insert(0, Finder())
"""


def test_ctrl_c_ends_with_130_and_no_traceback(tmp_path: Path) -> None:
    fifo = tmp_path / "log.txt"
    os.mkfifo(fifo)
    program = subprocess.Popen(
        command("redact", "test", str(fifo)), env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    # The other end opens only once the program waits for it: the program is then in the middle of its work.
    with program, fifo.open("wb"):
        program.send_signal(signal.SIGINT)
        said = program.communicate(timeout=TIMEOUT_SECONDS)

    assert program.returncode == INTERRUPTED
    assert said == (b"", b"")


def test_output_that_is_not_a_terminal_has_no_colour() -> None:
    assert "\x1b" not in exporter().stdout + exporter("config", "show").stdout + exporter("nonsense").stderr


@pytest.mark.parametrize(
    "line", ["run --until-idle", "up --no-open", "sessions list", "backfill --all", "verify --all"]
)
def test_a_directory_of_the_cli_that_was_named_and_is_not_there_ends_with_3(line: str, tmp_path: Path) -> None:
    missing = tmp_path / "elsewhere"

    answer = exporter(*line.split(), "--copilot-home", str(missing))

    assert answer.returncode == Exit.CONFIGURATION
    assert f"--copilot-home: {missing} is not a directory" in answer.stderr
    assert not missing.exists()


def test_the_default_directory_of_the_cli_need_not_be_there_yet() -> None:
    assert exporter("sessions", "list").returncode == Exit.DONE


@pytest.mark.parametrize("command_line", ["up --no-open --port {}", "mission-control serve --port {}"])
def test_a_port_in_use_ends_with_3_and_says_so(command_line: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        answer = exporter(*command_line.format(port).split())

    assert answer.returncode == Exit.CONFIGURATION
    assert f"Port {port} on 127.0.0.1 is in use." in answer.stderr


def test_beside_another_exporter_run_ends_with_7_before_it_compiles_rules(own_home: Path) -> None:
    with owned(own_home / "state" / "exporter"):
        answer = exporter("run")

    assert answer.returncode == Exit.LOCKED, answer.stderr
    assert list(own_home.rglob("*.hsdb")) == []
