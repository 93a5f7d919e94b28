"""The list of commands: what a person types, what the help says, and where the command is.

To add a command, write a file in `commands` that declares it (see `command`), and add its line here.
"""

import importlib
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from exporter.cli.command import Command

COMPLETE_VARIABLE: Final = "_EXPORTER_COMPLETE"
"""The variable with which a completion script asks for what can stand at the cursor."""


class CommandRow(NamedTuple):
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
    CommandRow("up", "show your sessions live in a local Mission Control", "commands.up:up"),
    CommandRow("run", "run the daemon in the foreground", "commands.run:run"),
    CommandRow("backfill", "deliver past sessions", "commands.backfill:backfill"),
    CommandRow("sessions list", "list the sessions on this machine, newest first", "commands.sessions:list_sessions"),
    CommandRow("sessions show", "show one session in detail", "commands.sessions:show"),
    CommandRow("sessions tail", "print the events of a session, secrets redacted", "commands.sessions:tail"),
    CommandRow("status", "show whether the daemon runs and what is pending", "commands.status:status"),
    CommandRow("verify", "compare Mission Controls and archives with files", "commands.verify:verify"),
    CommandRow("archive forget", "delete a session in the archives", "commands.archive:forget"),
    CommandRow("redact test", "redact a file or standard input, or list findings", "redact.test:test"),
    CommandRow("redact preview", "show what would be redacted in a session", "redact.preview:preview"),
    CommandRow("redact rules", "list all rules with provider and example", "redact.rules:rules"),
    CommandRow("redact report", "count what was redacted by rule, session and day", "redact.report:report"),
    CommandRow(
        "quarantine list", "list events that could not be sent, with reasons", "commands.quarantine:list_entries"
    ),
    CommandRow("quarantine show", "show one quarantined event", "commands.quarantine:show"),
    CommandRow("quarantine replay", "send quarantined events again", "commands.quarantine:replay"),
    CommandRow("quarantine drop", "delete quarantined events; they are not delivered", "commands.quarantine:drop"),
    CommandRow("tap install", "install the CLI extension that adds live events", "commands.tap:install"),
    CommandRow("tap status", "show whether the extension is there and up to date", "commands.tap:status"),
    CommandRow("tap uninstall", "remove the extension", "commands.tap:uninstall"),
    CommandRow("service install", "install the exporter as a service, and start it", "commands.service:install"),
    CommandRow("service uninstall", "stop the service and remove it; marks stay", "commands.service:uninstall"),
    CommandRow("service status", "show whether the service runs and is current", "commands.service:status"),
    CommandRow("service restart", "stop and start the service", "commands.service:restart"),
    CommandRow("service logs", "show the last lines that the service wrote", "commands.service:logs"),
    CommandRow("backup", "copy marks, quarantine and the embedded store", "commands.backup:backup"),
    CommandRow("restore", "put a backup back", "commands.backup:restore"),
    CommandRow("doctor", "check the installation and suggest fixes", "commands.doctor:doctor"),
    CommandRow("upgrade-check", "ask a package index for a newer version", "commands.upgrade_check:upgrade_check"),
    CommandRow("config show", "show the effective settings, secrets redacted", "commands.config:show"),
    CommandRow("config check", "validate a configuration file", "commands.config:check"),
    CommandRow("config example", "print an annotated configuration file", "commands.config:example"),
    CommandRow("config schema", "print the JSON Schema of the configuration file", "commands.config:schema"),
    CommandRow(
        "mission-control serve", "run the receiver and its web page alone, for a team", "commands.mission_control:serve"
    ),
    CommandRow(
        "mission-control restore",
        "allow a deleted session to be uploaded again",
        "commands.mission_control:restore",
    ),
    CommandRow(
        "mission-control migrate", "make or update the tables on PostgreSQL", "commands.mission_control:migrate"
    ),
    CommandRow("mission-control index", "make searches on PostgreSQL fast", "commands.mission_control:index"),
    CommandRow("mission-control copy", "copy a store into an empty one", "commands.mission_control:copy"),
    CommandRow("mission-control token", "create, list and revoke access tokens", "commands.mission_control:token"),
    CommandRow("mission-control tenant", "create, list and remove tenants", "commands.mission_control:tenant"),
    CommandRow("mission-control key", "make a new key of redaction tags", "commands.mission_control:key"),
    CommandRow("mission-control share", "list, count and revoke share links", "commands.mission_control:share"),
    CommandRow("mission-control audit", "show who read, exported and deleted", "commands.mission_control:audit"),
    CommandRow("dashboards export", "write Grafana dashboards and alert rules", "commands.dashboards:export"),
    CommandRow("dashboards up", "write a directory that starts Grafana and stores", "commands.dashboards:up"),
    CommandRow("completion", "print a completion script for bash, zsh or fish", "commands.completion:completion"),
)

GROUPS: Final[dict[str, str]] = {
    "sessions": "sessions on this machine",
    "archive": "sessions kept as files",
    "redact": "test, preview and report the redaction of secrets",
    "quarantine": "events that could not be sent, kept on this machine",
    "tap": "the CLI extension that adds live events",
    "service": "the exporter as a service of systemd, launchd or Windows",
    "config": "effective settings, validation, example and schema",
    "mission-control": "the receiver and its web page",
    "dashboards": "Grafana dashboards for the telemetry",
}


def find(words: str) -> CommandRow | None:
    """The command of exactly these words."""
    return next((one for one in COMMANDS if one.words == words), None)
