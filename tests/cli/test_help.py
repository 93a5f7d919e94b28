"""Help that answers: every command has examples that really parse, and the exit codes are listed."""

import shlex

import pytest

from exporter.cli.help import EXIT_MEANINGS, group_help, overview
from exporter.cli.main import run
from exporter.cli.output.table import Palette
from exporter.cli.parser import build, option_strings, refuse_unknown_flags, split
from exporter.cli.registry import COMMANDS, GROUPS, Command, members
from exporter.errors import Exit
from tests.cli.program import exporter

EVERY = pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.words)


@EVERY
def test_help_of_a_command_shows_its_examples(command: Command, capsys: pytest.CaptureFixture[str]) -> None:
    code = run([*command.words.split(), "--help"])

    shown = capsys.readouterr().out
    assert code == Exit.DONE
    assert all(f"  {example.line}" in shown and example.does in shown for example in command.leaf().examples)
    assert shown.startswith(f"usage: exporter {command.words}")


@EVERY
def test_an_example_is_a_command_line_of_its_own_command(command: Command) -> None:
    for example in command.leaf().examples:
        line = example.line.removeprefix("source <(").partition(")" if example.line.startswith("source") else "|")[0]
        tokens = shlex.split(line.partition(">")[0])
        words, rest = split(tokens[1:])
        parser = build(command.words, command.leaf())
        refuse_unknown_flags(parser, rest)

        assert tokens[0] == "exporter"
        assert words == command.words
        assert parser.parse_args(rest)


@EVERY
def test_every_argument_says_what_it_is_for(command: Command) -> None:
    actions = build(command.words, command.leaf())._actions

    assert [action.dest for action in actions if not action.help] == []


@EVERY
def test_global_flags_are_taken_before_and_after_the_command(command: Command) -> None:
    given = ["--config", "a.toml", "--json", "--state-dir", "s", "--copilot-home", "c", "--no-color", "-v", "-q"]

    before, after = split([*given, *command.words.split()]), split([*command.words.split(), *given])

    assert before == after
    assert before.words == command.words
    assert before.rest == given
    assert {flag for flag in given if flag.startswith("-")} < set(option_strings(build(command.words, command.leaf())))


def test_the_overview_lists_every_command_and_every_exit_code() -> None:
    shown = overview(Palette(), None)

    assert [command.words for command in COMMANDS if f"  {command.words}  " not in shown] == []
    assert set(EXIT_MEANINGS) == set(Exit)
    assert [code for code, meaning in EXIT_MEANINGS.items() if f"  {int(code)}  {meaning}" not in shown] == []


def test_the_overview_fits_a_terminal_of_80_columns() -> None:
    shown = overview(Palette(), 80)

    assert [line for line in shown.splitlines() if len(line) > 80] == []
    assert [command.summary for command in COMMANDS if command.summary not in shown] == []


@pytest.mark.parametrize("group", GROUPS)
def test_help_of_a_group_shows_its_commands_and_examples(group: str) -> None:
    shown = group_help(group, Palette())

    assert all(f"exporter {command.words}" in shown and command.summary in shown for command in members(group))
    assert "examples:" in shown


def test_the_program_without_a_command_shows_the_overview() -> None:
    answer = exporter()

    assert answer.returncode == Exit.DONE
    assert "first steps:" in answer.stdout
    assert answer.stderr == ""


@pytest.mark.parametrize("arguments", [["--version"], ["-V"], ["--no-color", "--version"]])
def test_the_version_is_told(arguments: list[str]) -> None:
    answer = exporter(*arguments)

    assert (answer.returncode, answer.stdout) == (Exit.DONE, "exporter 0.1.0\n")


def test_the_version_as_json() -> None:
    assert exporter("--version", "--json").stdout == '{"version":"0.1.0"}\n'
