"""The list of commands: what a person types, what the help says, and where the command is.

To add a command, write a file in `commands` that declares it (see `command`), and add its line here.
"""

import importlib
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from exporter.cli.command import Command

COMPLETE_VARIABLE: Final = "_EXPORTER_COMPLETE"
"""The variable with which a completion script asks for what can stand at the cursor."""


class Registered(NamedTuple):
    """One line of the help: `words` are what a person types, `place` is its module here and its name there."""

    words: str
    summary: str
    place: str

    def load(self) -> "Command":
        """The command itself; imports its module."""
        module, _, name = self.place.partition(":")
        command: Command = getattr(importlib.import_module(f"exporter.cli.{module}"), name)
        return command


COMMANDS: Final = (
    Registered("up", "your sessions in a Mission Control of your own, live", "commands.up:up"),
    Registered("run", "follow and deliver in the foreground: the daemon", "commands.run:run"),
    Registered("backfill", "deliver history", "commands.backfill:backfill"),
    Registered("sessions list", "the sessions on this machine, newest first", "commands.sessions:list_sessions"),
    Registered("sessions show", "one session in detail", "commands.sessions:show"),
    Registered("sessions tail", "the events of a session, secrets masked", "commands.sessions:tail"),
    Registered("status", "does it run, and does every sink have everything", "commands.status:status"),
    Registered("verify", "compare each Mission Control with the session files", "commands.verify:verify"),
    Registered("redact test", "mask a file or the input, and say what was found", "redact.test:test"),
    Registered("redact preview", "what would be masked in a session", "redact.preview:preview"),
    Registered("redact rules", "every rule, with provider and example", "redact.rules:rules"),
    Registered("redact report", "what was masked, by rule, session and day", "redact.report:report"),
    Registered(
        "quarantine list", "events that could not be sent, each with its reason", "commands.quarantine:list_entries"
    ),
    Registered("quarantine show", "one of them in detail", "commands.quarantine:show"),
    Registered("quarantine replay", "try to send them again", "commands.quarantine:replay"),
    Registered("quarantine drop", "forget them for good", "commands.quarantine:drop"),
    Registered("tap install", "show live what is never on disk", "commands.tap:install"),
    Registered("tap status", "is the extension there, and is it ours", "commands.tap:status"),
    Registered("tap uninstall", "take it away again", "commands.tap:uninstall"),
    Registered("doctor", "check everything; a remedy for each problem", "commands.doctor:doctor"),
    Registered("config show", "the settings in force, secrets masked", "commands.config:show"),
    Registered("config check", "validate a configuration file", "commands.config:check"),
    Registered("config example", "an annotated configuration file", "commands.config:example"),
    Registered("config schema", "the JSON Schema of the configuration file", "commands.config:schema"),
    Registered(
        "mission-control serve", "the receiver and its web page alone, for a team", "commands.mission_control:serve"
    ),
    Registered(
        "mission-control token", "who may use it: create, list and revoke tokens", "commands.mission_control:token"
    ),
    Registered("dashboards export", "write Grafana dashboards and alert rules", "commands.dashboards:export"),
    Registered("completion", "completion script for the shell: bash, zsh or fish", "commands.completion:completion"),
)

GROUPS: Final[dict[str, str]] = {
    "sessions": "what is here: the sessions of this machine",
    "redact": "secrets: what is masked, what would be, and by which rules",
    "quarantine": "events that could not be sent, kept on this machine",
    "tap": "what happens live in a session, from an extension of the CLI",
    "config": "the settings: what is in force, validation, an example",
    "mission-control": "the receiver and its web page",
    "dashboards": "what the telemetry can be looked at with",
}


def find(words: str) -> Registered | None:
    """The command of exactly these words."""
    return next((one for one in COMMANDS if one.words == words), None)
