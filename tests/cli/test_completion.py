"""Completion offers the commands and flags that exist, in bash for real."""

import shlex
import subprocess

import pytest

from exporter.cli.completion import Entry, bash, entries, fish, zsh
from exporter.cli.registry import COMMANDS, first_words

ASK = """
eval "$1"
COMP_WORDS=({words}); COMP_CWORD={last}
_exporter
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


def offered(*words: str) -> list[str]:
    """What bash offers for the last of these words."""
    ask = ASK.format(words=shlex.join(["exporter", *words]), last=len(words))
    answer = subprocess.run(["bash", "-c", ask, "bash", bash()], capture_output=True, text=True, timeout=60, check=True)
    assert answer.stderr == ""
    return answer.stdout.split()


def test_bash_offers_the_commands() -> None:
    assert offered("") == first_words()
    assert offered("qu") == ["quarantine"]
    assert offered("--config", "x.toml", "--json", "ver") == ["verify"]


def test_bash_offers_the_commands_of_a_group() -> None:
    assert offered("quarantine", "") == ["list", "show", "replay", "drop"]
    assert offered("config", "ch") == ["check"]


@pytest.mark.parametrize("entry", entries(), ids=lambda entry: entry.command.words)
def test_bash_offers_the_flags_of_each_command(entry: Entry) -> None:
    spellings = [spelling for flag in entry.flags for spelling in flag.spellings]

    assert offered(*entry.command.words.split(), "--") == [one for one in spellings if one.startswith("--")]


def test_bash_offers_the_choices_of_a_flag() -> None:
    assert offered("sessions", "list", "--state", "") == ["working", "idle", "needs_attention", "ended", "crashed"]


def test_bash_offers_nothing_where_only_the_person_knows() -> None:
    assert offered("up", "--days", "") == []
    assert offered("status", "") == []


@pytest.mark.parametrize("script", [zsh(), fish()], ids=["zsh", "fish"])
def test_the_other_shells_know_every_command_and_flag(script: str) -> None:
    flags = {spelling for entry in entries() for flag in entry.flags for spelling in flag.spellings}

    assert [word for command in COMMANDS for word in command.words.split() if word not in script] == []
    assert [f for f in flags if f not in script and f"-l {f[2:]}" not in script and f"-s {f[1:]}" not in script] == []
