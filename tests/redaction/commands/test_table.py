"""The table of commands that print secrets: its rows, how they are matched, and rows of users."""

import json
import time
from pathlib import Path

import pytest

from redaction.commands.table import PrintingCommands, PrintingRow, built_in_table, check_row
from redaction.engine import Engine
from redaction.errors import RuleError
from tests.shared import CACHE

ROWS = built_in_table().command
COMMANDS = PrintingCommands(ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_every_row_is_told_by_its_example_and_not_by_its_counter_example(row: PrintingRow) -> None:
    check_row(row, "commands.toml")

    told = COMMANDS.of(row.example)
    assert told is not None
    assert told.id == row.id
    assert COMMANDS.of(row.counter) is None


def test_the_rows_stand_in_the_order_of_their_ids_each_once() -> None:
    ids = [row.id for row in ROWS]

    assert ids == sorted(set(ids))


@pytest.mark.parametrize(
    ("command", "id"),
    [
        ("sudo -u ops bash -lc 'cd /srv && pass show a | head -1'", "printed.pass"),
        ("ssh ops@h9 cat /run/secrets/db", "printed.file"),
        ("docker exec -it c sh -c 'printenv DB_PASSWORD'", "printed.variable"),
        ("kubectl -n x exec pod -- printenv API_TOKEN", "printed.variable"),
        ("kubectl get cm x -o json | jq -r .data.k | base64 -d", "printed.decoded"),
        ("kubectl get secret x -ojson | jq .data", "printed.kubernetes"),
        ("kubectl get secret,configmap -o yaml", "printed.kubernetes"),
        ("kubectl get cm,secrets -o yaml", "printed.kubernetes"),
        ("kubectl get pods,secret,cm -o yaml", "printed.kubernetes"),
        ("kubectl get externalsecret,cm -o yaml", None),
        ("LC_ALL=C tr -dc a-z </dev/urandom | head -c 20", "printed.generator"),
        ('echo "${GITHUB_TOKEN}"', "printed.variable"),
        ("/usr/bin/openssl rand -hex 16 | tee key", "printed.openssl"),
        ("vault kv get secret/db -field=password", "printed.vault"),
        ("security find-generic-password -wa me", "printed.keychain"),
        ("az storage account keys list -n x", "printed.azure"),
        ("C:\\tools\\gh.exe auth token", None),  # a backslash is no separator in a shell
        ("'C:\\tools\\gh.exe' auth token", "printed.github"),
        ("GET-SECRET x -AsPlainText", "printed.powershell"),
        ("openssl rand --help", None),
        ("gpg -d -o - secrets.gpg", "printed.gpg"),
        ("gpg -d -o- secrets.gpg", "printed.gpg"),
        ("age -do - secrets.age", "printed.age"),
        ("terraform output -json | jq 'keys'", None),
        ("terraform output -json | jq -r '.db | keys[]' | sort", None),
        ("terraform output -json | sudo jq --sort-keys 'to_entries[].key'", None),
        ("terraform output -json | jq length", None),
        ("terraform output -json | wc -l", None),
        ("pass show a | sha256sum", None),
        ("pass show a | grep -ic user", None),
        ("pass show a | rg --count user", None),
        ("kubectl get secret -o json | jq -r '.items[].metadata.name'", None),
        ("pass show a | awk 'END {print NR}'", None),
        ("terraform output -json | jq .keys", "printed.terraform"),
        ("terraform output -json | jq 'keys, .'", "printed.terraform"),
        ("terraform output -json | jq 'keys as $k | .'", "printed.terraform"),
        ("terraform output -json | jq --arg keys x .", "printed.terraform"),
        ("terraform output -json | jq keys; terraform output -json", "printed.terraform"),
        ("terraform output -json | tee keys", "printed.terraform"),
        ("pass show a | grep -e -c", "printed.pass"),
        ("pass show a | grep -ec x", "printed.pass"),
        ("pass show a | rg -rc x", "printed.pass"),
        ("sops -d --output /dev/stdout secrets.yaml", "printed.sops"),
        ("sops -d --output=/dev/stdout secrets.yaml", "printed.sops"),
        ("dd if=/dev/urandom of=/dev/stdout", "printed.generator"),
        ("gpg -d -o out secrets.gpg", None),
        ("gpg -d secrets.gpg -o", None),
        ("dd if=/dev/urandom of=file", None),
        ("glab config get token -h gitlab.example.net", "printed.gitlab"),
        ("gh auth token -h github.example.net", "printed.github"),
        ("grep -r 'pass show' .", None),
        ("git commit -m 'use vault kv get'", None),
        ("pass show a | sha256sum", None),
        ("TOKEN=$(gh auth token) make", None),
        ("printenv", None),
        ("echo $HOME", None),
        ("cat src/pass/show.py", None),
    ],
)
def test_a_command_is_told_however_it_is_run(command: str, id: str | None) -> None:
    found = COMMANDS.of(command)

    assert (found and found.id) == id


@pytest.mark.parametrize(
    "arguments",
    [
        {"command": "pass show a"},
        {"input": "pass show a", "mode": "sync"},
        {"command": ["bash", "-lc", "pass show a"]},
        {"cmd": ["pass", "show", "a"]},
        {"commands": ["ls", "pass show a"]},
        "pass show a",
        json.dumps({"command": "pass show a"}),
    ],
)
def test_the_command_is_found_in_the_arguments_of_any_tool(arguments: object) -> None:
    found = COMMANDS.rule_of(json.dumps({"toolCallId": "c", "toolName": "x", "arguments": arguments}).encode())

    assert found is not None
    assert found.id == "printed.pass"


@pytest.mark.parametrize(
    "data",
    [b"", b"null", b"[]", b'{"arguments":1}', b'{"arguments":"{"}', b'{"arguments":{"command":' + b"[" * 5000, b"\xff"],
)
def test_data_without_a_command_has_no_rule(data: bytes) -> None:
    assert COMMANDS.rule_of(data) is None


TABLE = """
version = "1"

[[command]]
id = "acme-vault"
provider = "Acme"
name = "secret of the vault"
run = ["acme vault read|show"]
unless = "--masked"
example = "acme vault read db"
counter = "acme vault list"
"""


def test_rows_of_a_users_file_are_told_too(tmp_path: Path) -> None:
    table = tmp_path / "rules.toml"
    table.write_text(TABLE)

    engine = Engine(rule_files=[table], cache_dir=CACHE)

    assert engine.rule_of_call(b'{"arguments":{"command":"acme -v vault show db"}}') == "acme-vault"
    assert engine.rule_of_call(b'{"arguments":{"command":"acme vault show db --masked"}}') is None
    assert "acme-vault" in {rule.id for rule in engine.rules()}


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ('"acme vault read db"', '"acme vault list"', "does not find its example"),
        ('"acme vault list"', '"acme vault read"', "finds its counter example"),
        ('["acme vault read|show"]', "[]", "names no program"),
        ("acme-vault", "printed.pass", "already a rule"),
        ("acme-vault", "bearer", "already a rule"),
    ],
)
def test_a_row_that_cannot_be_used_stops_the_start(tmp_path: Path, old: str, new: str, why: str) -> None:
    table = tmp_path / "rules.toml"
    table.write_text(TABLE.replace(old, new))

    with pytest.raises(RuleError, match=why):
        Engine(rule_files=[table], cache_dir=CACHE)


@pytest.mark.alone
@pytest.mark.parametrize(
    "unit",
    [
        "sudo pass show ",
        "pass show | x ",
        "bash 'pass show",
        "(pass show;",
        "echo $a_tokens ",
        "pass show | jq '.a.a' ",
    ],
)
def test_a_hostile_command_takes_time_in_proportion(unit: str) -> None:
    def seconds(size: int) -> float:
        text = ("sudo " + unit * size)[:size] + "show"
        begun = time.process_time()
        COMMANDS.of(text)
        return time.process_time() - begun

    least = min(seconds(8_000) for _ in range(3))

    assert min(seconds(64_000) for _ in range(2)) < 8 * 5 * least + 0.02
