"""Completion offers the commands, options and sessions that exist: in bash for real, in the others by what they ask."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

from exporter.cli.registry import COMMANDS, GROUPS, CommandRow
from exporter.errors import Exit
from tests.cli.command_line import parse
from tests.cli.program import ROOT, TIMEOUT_SECONDS, environment, exporter
from tests.cli.test_help import tokens_of

SESSION = "3f2ab1c0-0000-4000-8000-000000000001"
ASK = """
source <(exporter completion bash)
COMP_WORDS=({words}); COMP_CWORD={last}
_exporter_completion exporter
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.fixture(autouse=True)
def on_path(own_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Puts the program under test on the path, as the shells call it by its name."""
    program = own_home / "bin" / "exporter"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m exporter "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")


@pytest.fixture
def session(own_home: Path) -> str:
    """A session below the test's own `~/.copilot`."""
    directory = own_home / ".copilot" / "session-state" / SESSION
    directory.mkdir(parents=True)
    (directory / "events.jsonl").touch()
    return SESSION


def offered(*words: str) -> list[str]:
    """What bash offers for the last of these words."""
    answer = subprocess.run(
        ["bash", "-c", ASK.format(words=shlex.join(["exporter", *words]), last=len(words))],
        env=environment(),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=True,
    )
    assert answer.stderr == ""
    return answer.stdout.split()


def test_bash_offers_the_commands() -> None:
    assert offered("") == list(dict.fromkeys(command.words.split()[0] for command in COMMANDS))
    assert offered("qu") == ["quarantine"]
    assert offered("--config", "x.toml", "--json", "ver") == ["verify"]


def test_bash_offers_the_commands_of_a_group() -> None:
    assert offered("quarantine", "") == ["list", "show", "replay", "drop"]
    assert offered("config", "ch") == ["check"]


def test_bash_offers_the_choices_of_a_flag() -> None:
    assert offered("sessions", "list", "--state", "") == ["working", "idle", "needs_attention", "ended", "crashed"]
    assert offered("completion", "") == ["bash", "zsh", "fish"]


def test_bash_offers_nothing_where_only_the_person_knows() -> None:
    assert offered("up", "--days", "") == []
    assert offered("status", "") == []


@pytest.mark.parametrize(
    "before", [["sessions", "show"], ["backfill", "--session"], ["redact", "preview", "--session"]]
)
def test_bash_offers_the_sessions_of_this_machine(session: str, before: list[str]) -> None:
    assert offered(*before, "") == offered(*before, session[:4]) == [session]
    assert offered(*before, "zz") == []


def test_the_sessions_offered_are_those_of_the_directory_that_is_named(session: str, own_home: Path) -> None:
    other = own_home / "other" / "session-state" / SESSION.replace("3", "4")
    other.mkdir(parents=True)
    (other / "events.jsonl").touch()

    assert offered("sessions", "show", "--copilot-home", str(own_home / "other"), "") == [other.name]


def test_a_wrong_setting_does_not_disturb_completion(own_home: Path) -> None:
    (own_home / "bad.toml").write_text("nonsense = 1")

    assert offered("sessions", "show", "--config", str(own_home / "bad.toml"), "") == []


def asked(shell: str, *words: str) -> list[str]:
    """The answer to what the script of this shell asks when the last of these words is to be completed."""
    last = words[-1] if shell == "fish" else str(len(words))
    question = {"COMP_WORDS": " ".join(["exporter", *words]), "COMP_CWORD": last}
    answer = exporter(**question, **{"_EXPORTER_COMPLETE": f"{shell}_complete"})
    assert (answer.returncode, answer.stderr) == (Exit.DONE, "")
    return answer.stdout.splitlines()


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.words)
def test_every_flag_of_a_command_is_offered_with_what_it_does(command: CommandRow) -> None:
    ctx = parse(*tokens_of(next(iter(command.load().examples)))[1:])
    flags = {
        name: param.help
        for param in ctx.command.get_params(ctx)
        if isinstance(param, click.Option)
        for name in param.opts
        if name.startswith("--")
    }

    said = asked("fish", *command.words.split(), "--")

    assert {"--json", "--help", "--config"} < set(flags)
    assert {line.partition(",")[2].partition("\t")[0]: line.partition("\t")[2] for line in said} == flags


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_other_shells_get_the_commands_with_their_summaries(shell: str) -> None:
    top, group = "\n".join(asked(shell, "")), "\n".join(asked(shell, "quarantine", ""))

    assert all(summary in top for summary in GROUPS.values())
    assert all(one.summary in top for one in COMMANDS if " " not in one.words)
    assert all(one.summary in group for one in COMMANDS if one.words.startswith("quarantine "))


def test_files_are_offered_where_a_file_is_wanted() -> None:
    assert asked("fish", "config", "check", "exp") == ["file,exp"]
    assert asked("fish", "dashboards", "export", "") == ["dir,"]
    assert asked("zsh", "status", "--config", "")[0] == "file"


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
def test_fish_offers_commands_and_sessions(session: str) -> None:
    line = 'exporter completion fish | source; complete -C "exporter quar"; complete -C "exporter sessions show 3"'

    answer = subprocess.run(
        ["fish", "-c", line], env=environment(), capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=True
    )

    # The library's script for fish cuts a description at its first comma.
    assert answer.stdout.split("\n") == [f"quarantine\t{GROUPS['quarantine'].partition(',')[0]}", session, ""]


@pytest.mark.parametrize(("shell", "begins"), [("bash", "_exporter_completion() {"), ("zsh", "#compdef exporter")])
def test_the_script_is_that_of_the_shell(shell: str, begins: str) -> None:
    assert exporter("completion", shell).stdout.startswith(begins)
