"""Help that answers: every command has examples that really parse, and the exit codes are listed."""

import shlex
from datetime import datetime

import click
import pytest

from exporter.cli.main import run
from exporter.cli.registry import COMMANDS, GROUPS, CommandRow
from exporter.errors import Exit
from tests.cli.command_line import parse
from tests.cli.program import exporter

EVERY = pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.words)


def shown_by(*arguments: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert run(arguments) == Exit.DONE
    return capsys.readouterr().out


def on_one_line(text: str) -> str:
    return " ".join(text.split())


def tokens_of(example: str) -> list[str]:
    line = example.removeprefix("source <(").partition(")" if example.startswith("source") else "|")[0]
    return shlex.split(line.partition(">")[0])


@EVERY
def test_help_of_a_command_shows_its_examples(command: CommandRow, capsys: pytest.CaptureFixture[str]) -> None:
    shown = shown_by(*command.words.split(), "--help", capsys=capsys)

    assert shown.startswith(f"Usage: exporter {command.words}")
    examples = command.load().examples
    assert examples
    assert all(f"{line} {does}" in on_one_line(shown) for line, does in examples.items())


@EVERY
def test_an_example_is_a_command_line_of_its_own_command(command: CommandRow) -> None:
    for example in command.load().examples:
        program, *arguments = tokens_of(example)

        assert program == "exporter"
        assert parse(*arguments).command_path == f"exporter {command.words}"


@EVERY
def test_every_argument_says_what_it_is_for(command: CommandRow) -> None:
    ctx = parse(*tokens_of(next(iter(command.load().examples)))[1:])

    assert [param.name for param in ctx.command.get_params(ctx) if not param.help] == []


def params_of(ctx: click.Context) -> dict[str, object]:
    """The values of a command; of `--since 7d` only the day, as every reading of it means another moment."""
    return {name: one.date() if isinstance(one, datetime) else one for name, one in ctx.params.items()}


@EVERY
def test_global_flags_are_taken_before_between_and_after(command: CommandRow) -> None:
    given = ["--config", "a.toml", "--json", "--state-dir", "s", "--copilot-home", "c", "--no-color", "-v", "-q"]
    _, first, *rest = tokens_of(next(iter(command.load().examples)))

    contexts = [parse(*given, first, *rest), parse(first, *given, *rest), parse(first, *rest, *given)]

    assert {ctx.command_path for ctx in contexts} == {f"exporter {command.words}"}
    assert params_of(contexts[0]) == params_of(contexts[1]) == params_of(contexts[2])
    assert all(ctx.obj.options == {"config": "a.toml", "state_dir": "s", "copilot_home": "c"} for ctx in contexts)


@pytest.mark.parametrize("arguments", [[], ["help"], ["--help"], ["-h"]])
def test_the_overview_lists_every_command_and_every_exit_code(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    shown = shown_by(*arguments, capsys=capsys)

    assert [command.words for command in COMMANDS if f"\n  {command.words} " not in shown] == []
    assert all(code.meaning for code in Exit)
    assert [code for code in Exit if f"\n  {int(code)}  {code.meaning}\n" not in shown] == []


def test_the_overview_fits_a_terminal_of_80_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")

    shown = shown_by("--help", capsys=capsys)

    assert [line for line in shown.splitlines() if len(line) > 80] == []
    assert [command.summary for command in COMMANDS if command.summary not in shown] == []


@pytest.mark.parametrize("group", GROUPS)
def test_help_of_a_group_shows_its_commands_and_examples(group: str, capsys: pytest.CaptureFixture[str]) -> None:
    shown = shown_by(group, "--help", capsys=capsys)

    members = [command for command in COMMANDS if command.words.startswith(f"{group} ")]
    assert members
    assert all(f"  {command.words} " in shown and command.summary in on_one_line(shown) for command in members)
    assert "Examples:" in shown
    assert shown_by("help", group, capsys=capsys) == shown


def test_help_is_shown_whatever_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown_by("quarantine", "show", "--help", capsys=capsys).startswith("Usage: exporter quarantine show")


def test_the_program_without_a_command_shows_the_overview() -> None:
    answer = exporter()

    assert answer.returncode == Exit.DONE
    assert "First steps:" in answer.stdout
    assert answer.stderr == ""


@pytest.mark.parametrize("arguments", [["--version"], ["-V"], ["--no-color", "--version"]])
def test_the_version_is_told(arguments: list[str]) -> None:
    answer = exporter(*arguments)

    assert (answer.returncode, answer.stdout) == (Exit.DONE, "exporter 0.1.0\n")


def test_the_version_as_json() -> None:
    assert exporter("--version", "--json").stdout == '{"version":"0.1.0"}\n'
