"""The settings of redaction as a file gives them, seen from the command line."""

import inspect
import json
from pathlib import Path
from typing import Any

import pytest

from exporter.errors import Exit
from redaction.engine import Engine
from redaction.rules.examples import expanded
from tests.cli.program import exporter

TOKEN = expanded("ghp_<base62:30><crc32:6>")
IN_HOUSE = expanded("acme_<base62:32>")
RULES = """
version = "7"
[[format]]
id = "acme-token"
provider = "Acme"
name = "deploy token"
pattern = 'acme_[0-9A-Za-z]{32}'
example = "acme_<base62:32>"
counter = "acme_<base62:12>"
source = "in house"
"""

by_the_engine = pytest.mark.skipif(
    "rule_files" not in inspect.signature(Engine).parameters, reason="the floor engine has no such settings"
)


@pytest.fixture
def home(own_home: Path) -> Path:
    """The test's configuration directory."""
    directory = own_home / "config" / "exporter"
    directory.mkdir(parents=True)
    return directory


def settings(home: Path, text: str) -> None:
    (home / "exporter.toml").write_text(text)


def output_of(home: Path, *values: Any, **more: str) -> str:
    (home / "given.jsonl").write_text("".join(json.dumps(value) + "\n" for value in values))
    answer = exporter("redact", "test", str(home / "given.jsonl"), **more)
    assert answer.returncode == Exit.DONE, answer.stderr
    return answer.stdout


@pytest.mark.usefixtures("installed")
def test_values_of_variables_with_telling_names_are_masked(home: Path) -> None:
    out = output_of(home, "quietly-Remembered8", MY_TOKEN="quietly-Remembered8", MY_NAME="somebody")

    assert "quietly" not in out


@pytest.mark.usefixtures("installed")
def test_an_allowed_path_is_the_file_of_the_tool_call(home: Path) -> None:
    settings(home, '[[redaction.allow]]\npath = "fixtures/**"\n')
    events = []
    for number, name in enumerate(("/p/fixtures/a.txt", "/p/a.txt")):
        data = {"toolCallId": f"c{number}", "toolName": "view", "arguments": {"path": name}}
        result = {"toolCallId": f"c{number}", "result": {"content": f"1. {TOKEN}"}}
        events += [
            {"type": "tool.execution_start", "data": data, "id": f"s{number}", "timestamp": ""},
            {"type": "tool.execution_complete", "data": result, "id": f"e{number}", "timestamp": ""},
        ]

    lines = output_of(home, *events).splitlines()

    assert [TOKEN in line for line in lines] == [False, True, False, False]


@by_the_engine
@pytest.mark.slow
def test_rules_of_the_users_own_mask_and_are_listed(home: Path) -> None:
    (home / "rules.toml").write_text(RULES)
    settings(home, '[redaction]\nextra_rules = ["rules.toml"]\n')

    out = output_of(home, f"use {IN_HOUSE} now")
    document = json.loads(exporter("redact", "rules", "--json").stdout)

    assert "[REDACTED:acme-token:" in out
    assert IN_HOUSE not in out
    [rule] = [rule for rule in document["rules"] if rule["id"] == "acme-token"]
    assert (rule["provider"], rule["pack"], rule["version"]) == ("Acme", "rules.toml", "7")


@by_the_engine
@pytest.mark.parametrize("line", ["redact test", "redact rules", "run --until-idle", "backfill --all"])
def test_a_rule_that_cannot_be_used_is_refused_by_name_at_the_start(home: Path, line: str) -> None:
    (home / "rules.toml").write_text(RULES.replace("acme_[0-9A-Za-z]{32}", "[0-9"))
    settings(home, '[redaction]\nextra_rules = ["rules.toml"]\n')

    answer = exporter(*line.split())

    assert answer.returncode == Exit.CONFIGURATION
    assert "rules.toml" in answer.stderr
    assert "acme-token" in answer.stderr
    assert "redaction.extra_rules" in answer.stderr


@by_the_engine
def test_the_doctor_names_a_rule_that_cannot_be_used(home: Path) -> None:
    settings(home, '[redaction]\nextra_rules = ["not-here.toml"]\n')

    answer = exporter("doctor", "--json")

    [check] = json.loads(answer.stdout)["checks"]
    assert answer.returncode == Exit.CONFIGURATION
    assert "not-here.toml" in check["detail"]


@by_the_engine
@pytest.mark.usefixtures("installed")
def test_stars_stand_for_every_secret_alike(home: Path) -> None:
    settings(home, '[redaction]\nmarker = "stars"\n')

    assert output_of(home, f"use {TOKEN} now") == '"use ****** now"\n'


@by_the_engine
@pytest.mark.slow
def test_compiled_rules_are_kept_from_the_first_call_on_and_nothing_else(home: Path, own_home: Path) -> None:
    output_of(home, f"use {TOKEN} now")

    assert (own_home / "cache" / "exporter").stat().st_mode & 0o777 == 0o700
    assert not (own_home / "state").exists()
