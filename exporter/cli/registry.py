"""The list of commands: what the help shows, and which module answers; nothing is imported before it is needed."""

import importlib
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from exporter.cli.context import CommandContext


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
    """One line of the help: `words` are what a person types, `module` (in this package) has it in its `LEAVES`."""

    words: str
    summary: str
    module: str

    def leaf(self) -> Leaf:
        """The command itself; imports its module."""
        leaves: dict[str, Leaf] = importlib.import_module(f"exporter.cli.{self.module}").LEAVES
        return leaves[self.words]


COMMANDS: Final = (
    Command("up", "your sessions in a Mission Control of your own, live", "commands.up"),
    Command("run", "follow and deliver in the foreground: the daemon", "commands.run"),
    Command("backfill", "deliver history", "commands.backfill"),
    Command("sessions list", "the sessions on this machine, newest first", "commands.sessions"),
    Command("sessions show", "one session in detail", "commands.sessions"),
    Command("sessions tail", "the events of a session, secrets masked", "commands.sessions"),
    Command("status", "does it run, and does every sink have everything", "commands.status"),
    Command("verify", "prove that each Mission Control holds what the files do", "commands.verify"),
    Command("redact test", "mask a file or the input, and say what was found", "redact.test"),
    Command("redact preview", "what would be masked in a session", "redact.preview"),
    Command("redact rules", "every rule, with provider and example", "redact.rules"),
    Command("redact report", "what was masked, by rule, session and day", "redact.report"),
    Command("quarantine list", "events that could not be sent, each with its reason", "commands.quarantine"),
    Command("quarantine show", "one of them in detail", "commands.quarantine"),
    Command("quarantine replay", "try to send them again", "commands.quarantine"),
    Command("quarantine drop", "forget them for good", "commands.quarantine"),
    Command("tap install", "show live what is never on disk", "commands.tap"),
    Command("tap status", "is the extension there, and is it ours", "commands.tap"),
    Command("tap uninstall", "take it away again", "commands.tap"),
    Command("doctor", "check everything; a remedy for each problem", "commands.doctor"),
    Command("config show", "the settings in force, secrets masked", "commands.config"),
    Command("config check", "validate a configuration file", "commands.config"),
    Command("config example", "an annotated configuration file", "commands.config"),
    Command("config schema", "the JSON Schema of the configuration file", "commands.config"),
    Command(
        "mission-control serve",
        "the receiver and its web page alone, for a team",
        "commands.mission_control",
    ),
    Command(
        "mission-control token",
        "who may use it: create, list and revoke tokens",
        "commands.mission_control",
    ),
    Command("dashboards export", "write Grafana dashboards and alert rules", "commands.dashboards"),
    Command("completion bash", "completion script for bash", "completion"),
    Command("completion zsh", "completion script for zsh", "completion"),
    Command("completion fish", "completion script for fish", "completion"),
)

GROUPS: Final[dict[str, str]] = {
    "sessions": "what is here: the sessions of this machine",
    "redact": "secrets: what is masked, what would be, and by which rules",
    "quarantine": "events that could not be sent, kept on this machine",
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
