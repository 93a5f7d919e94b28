"""The quick answers stay quick: they do not import what only long work needs."""

import json
import subprocess
import sys

import pytest

from tests.cli.program import ROOT, TIMEOUT_SECONDS, environment, up

HEAVY = {
    *("httpx", "rich", "opentelemetry", "starlette", "uvicorn", "grpc", "tenacity", "jinja2"),
    *("detect_secrets", "hyperscan", "redaction"),
}
RUNNER = """
import io, json, sys
sys.argv = ["exporter", *json.loads(sys.argv[1])]
real, sys.stdout = sys.stdout, io.TextIOWrapper(io.BytesIO())
from exporter.__main__ import main
code = main()
json.dump({"code": code, "modules": sorted(sys.modules)}, real)
"""


def imported_by(*arguments: str, **variables: str) -> tuple[int, set[str]]:
    answer = subprocess.run(
        [sys.executable, "-c", RUNNER, json.dumps(arguments)],
        cwd=ROOT,
        env=environment(**variables),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=True,
    )
    said = json.loads(answer.stdout)
    return said["code"], set(said["modules"])


def test_the_version_imports_almost_nothing() -> None:
    code, modules = imported_by("--version")

    assert code == 0
    assert {name for name in modules if name.startswith("exporter")} == {
        "exporter",
        "exporter.__main__",
        "exporter.version",
    }
    assert modules & (HEAVY | {"click", "asyncio", "msgspec", "pathlib", "dataclasses"}) == set()


@pytest.mark.parametrize(
    ("line", "command"),
    [("--help", set()), ("status --help", {"status"}), ("config --help", {"config"})],
)
def test_help_imports_no_command_but_its_own(line: str, command: set[str]) -> None:
    below = "exporter.cli.commands."

    code, modules = imported_by(*line.split())

    assert code == 0
    assert {name.removeprefix(below) for name in modules if name.startswith(below)} == command
    assert modules & (HEAVY | {"msgspec", "click.shell_completion"}) == set()


@pytest.mark.parametrize(("words", "last"), [("exporter", 1), ("exporter ses", 1), ("exporter sessions", 2)])
def test_completion_of_a_command_imports_none(words: str, last: int) -> None:
    code, modules = imported_by(_EXPORTER_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=str(last))

    assert code == 0
    assert {name for name in modules if name.startswith(("exporter.cli.commands", "exporter.cli.redact"))} == set()
    assert modules & (HEAVY | {"msgspec"}) == set()


def test_status_imports_nothing_heavy_whether_or_not_a_daemon_runs() -> None:
    alone = imported_by("status")
    with up():
        beside_a_daemon = imported_by("status", "--json")

    assert (alone[0], beside_a_daemon[0]) == (0, 0)
    assert (alone[1] | beside_a_daemon[1]) & HEAVY == set()
