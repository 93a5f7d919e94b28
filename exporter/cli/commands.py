"""The list of commands: what the help shows, and which module answers; nothing is imported before it is needed."""

import importlib
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from exporter.cli.invocation import CommandContext


class Example(NamedTuple):
    """A command line people can copy, and what it does."""

    line: str
    does: str


@dataclass(frozen=True, slots=True)
class Leaf:
    """One command as its module describes it: arguments, examples, and what runs."""

    description: str
    examples: tuple[Example, ...]
    build: Callable[[ArgumentParser], None]
    run: "Callable[[CommandContext], int]"


class Command(NamedTuple):
    """One line of the help: `words` are what a person types, `module` holds a `LEAVES` with the command in it."""

    words: str
    summary: str
    module: str

    def leaf(self) -> Leaf:
        """The command itself; imports its module."""
        leaves: dict[str, Leaf] = importlib.import_module(self.module).LEAVES
        return leaves[self.words]


COMMANDS: Final = (
    Command("up", "your sessions in a Mission Control of your own, live", "exporter.cli.up"),
    Command("run", "follow and deliver in the foreground: the daemon", "exporter.cli.run"),
    Command("backfill", "deliver history", "exporter.cli.backfill"),
    Command("sessions list", "the sessions on this machine, newest first", "exporter.cli.sessions"),
    Command("sessions show", "one session in detail", "exporter.cli.sessions"),
    Command("sessions tail", "the events of a session, secrets masked", "exporter.cli.sessions"),
    Command("status", "does it run, and does every sink have everything", "exporter.cli.status"),
    Command("verify", "prove that each sink holds what the files do", "exporter.cli.verify"),
    Command("redact test", "mask a file or the input, and say what was found", "exporter.cli.redact_test"),
    Command("redact preview", "what would be masked in a session", "exporter.cli.redact_preview"),
    Command("redact rules", "every rule, with provider and example", "exporter.cli.redact_rules"),
    Command("redact report", "what was masked, by rule, session and day", "exporter.cli.redact_report"),
    Command("quarantine list", "events that could not be sent, each with its reason", "exporter.cli.quarantine"),
    Command("quarantine show", "one of them in detail", "exporter.cli.quarantine"),
    Command("quarantine replay", "try to send them again", "exporter.cli.quarantine"),
    Command("quarantine drop", "forget them for good", "exporter.cli.quarantine"),
    Command("archive forget", "delete a session in the archives", "exporter.cli.archive"),
    Command("tap install", "show live what is never on disk", "exporter.cli.tap"),
    Command("tap status", "is the extension there, and is it ours", "exporter.cli.tap"),
    Command("tap uninstall", "take it away again", "exporter.cli.tap"),
    Command("doctor", "check everything; a remedy for each problem", "exporter.cli.doctor"),
    Command("config show", "the settings in force, secrets masked", "exporter.cli.config"),
    Command("config check", "validate a configuration file", "exporter.cli.config"),
    Command("config example", "an annotated configuration file", "exporter.cli.config"),
    Command("config schema", "the JSON Schema of the configuration file", "exporter.cli.config"),
    Command("mission-control serve", "the receiver and its web page alone, for a team", "exporter.cli.mission_control"),
    Command("mission-control token", "who may use it: create, list and revoke tokens", "exporter.cli.mission_control"),
    Command("dashboards export", "write Grafana dashboards and alert rules", "exporter.cli.dashboards"),
    Command("completion bash", "completion script for bash", "exporter.cli.completion"),
    Command("completion zsh", "completion script for zsh", "exporter.cli.completion"),
    Command("completion fish", "completion script for fish", "exporter.cli.completion"),
)

GROUPS: Final[dict[str, str]] = {
    "sessions": "what is here: the sessions of this machine",
    "redact": "secrets: what is masked, what would be, and by which rules",
    "quarantine": "events that could not be sent, kept on this machine",
    "archive": "sessions kept as files",
    "tap": "what happens live in a session, from an extension of the CLI",
    "config": "the settings: what is in force, validation, an example",
    "mission-control": "the receiver and its web page",
    "dashboards": "what the telemetry can be looked at with",
    "completion": "completion scripts for the shell",
}


def find(words: str) -> Command | None:
    """The command of exactly these words."""
    return next((command for command in COMMANDS if command.words == words), None)


def members(group: str) -> Iterator[Command]:
    """The commands of a group, in the order of the help."""
    return (command for command in COMMANDS if command.words.startswith(f"{group} "))


def first_words() -> list[str]:
    """What can stand first on the command line, in the order of the help."""
    return list(dict.fromkeys(command.words.split()[0] for command in COMMANDS))
