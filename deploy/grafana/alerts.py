"""Alert rules for Prometheus: what somebody should look at, of the sessions and of the exporter itself."""

from dataclasses import dataclass
from typing import Final, Literal

import yaml

from deploy.grafana.promql import growth, highest, increase, share, silent
from otel import health, instruments, names

_EVERY_SECONDS: Final = 60
_HOUR: Final = "1h"


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: it fires when the expression has an answer for as long as `lasting` says."""

    name: str
    expression: str
    lasting: str
    severity: Literal["critical", "warning", "info"]
    summary: str
    remedy: str


def session_rules() -> tuple[Rule, ...]:
    """What goes wrong in sessions. A few failures are every day's work; the limits are meant to be changed."""
    calls = growth(instruments.TOOL_CALLS, by=[names.GIT_REPOSITORY], over=_HOUR)
    failed = growth(instruments.TOOL_CALLS, by=[names.GIT_REPOSITORY], where={names.LABEL_SUCCESS: "false"}, over=_HOUR)
    told = growth(
        instruments.NOTIFICATIONS, by=[names.GIT_REPOSITORY], where={names.NOTIFICATION_STATUS: "failed"}, over=_HOUR
    )
    return (
        Rule(
            "CopilotToolsFail", f"{share(failed, calls)} > 0.5 and {calls} >= 10", "10m", "warning",
            "More than half of the tool calls of the last hour failed",
            "See the dashboard Tools & permissions: failure types, and commands that failed.",
        ),
        Rule(
            "CopilotSessionsCrash", f"{growth(instruments.ORPHANS, over=_HOUR)} > 0", "0m", "warning",
            "A session was cut off: its process ended without a shutdown",
            "See the failures in the Session explorer; resume the session or let it be.",
        ),
        Rule(
            "CopilotErrors", f"{growth(instruments.ERRORS, by=[names.ERROR_TYPE], over=_HOUR)} >= 5", "0m", "warning",
            "Sessions reported five errors of one type, or more, within an hour",
            "The error type says whether it is the network, the quota or the sign-in.",
        ),
        Rule(
            "CopilotBackgroundAgentsFail", f"{told} >= 3", "0m", "info",
            "Three background agents, or more, failed within an hour",
            "See the dashboard System notifications.",
        ),
    )  # fmt: skip


def health_rules() -> tuple[Rule, ...]:
    """What is wrong with the exporter, by its own account; nothing fires where it does not send one."""
    lag, queue = (highest(each, by=[health.SINK]) for each in (health.LAG_TIME, health.LAG_EVENTS))
    rejected = increase(health.REJECTED, by=[health.SINK], over=_HOUR)
    unknown = increase(health.UNKNOWN_EVENTS, by=[health.TYPE], over="1d")
    defects = increase(health.DEFECTS, over="1d")
    return (
        Rule(
            "ExporterBehind", f"{lag} > 900 and {queue} > 0", "10m", "warning",
            "A sink is more than a quarter of an hour behind",
            "Nothing is lost while the session files exist. `exporter status` says what the endpoint answered last.",
        ),
        Rule(
            "ExporterRefused", f"{highest(health.REFUSED, by=[health.SINK])} > 0", "1m", "critical",
            "A sink refuses the token",
            "Nothing is sent there until the token file holds another one; no restart is needed.",
        ),
        Rule(
            "ExporterUnreachable", f"{highest(health.WAITING, by=[health.SINK])} > 0", "30m", "warning",
            "A sink takes no events for half an hour",
            "Nothing is lost while the session files exist. `exporter doctor` says what refuses on the way.",
        ),
        Rule(
            "ExporterNotReady", f"{highest(health.PROBLEMS)} > 0", "5m", "critical",
            "The exporter does not follow, or cannot remember what it delivered",
            "`/readyz` has the reasons; a full disk is the most frequent one.",
        ),
        Rule(
            "ExporterRejected", f"{rejected} > 0", "0m", "critical",
            "An endpoint did not take records",
            "They are in quarantine: `exporter quarantine list` has the reasons, `exporter quarantine replay` tries "
            "again.",
        ),
        Rule(
            "ExporterHoldsBack", f"{highest(health.QUARANTINED)} > 0", "1h", "warning",
            "Events are in quarantine",
            "`exporter quarantine list` has the reasons. They stay there for 30 days.",
        ),
        Rule(
            "ExporterDefects", f"{defects} > 0", "0m", "warning",
            "An error of the exporter kept something of an event from telemetry",
            "All other events are told. `exporter status` names the place in its code: please report it.",
        ),
        Rule(
            "ExporterUnknownEvents", f"{unknown} > 0", "0m", "info",
            "The Copilot CLI writes events of a type that this version does not know",
            "They are delivered as they are; a newer exporter may make more of them.",
        ),
        Rule(
            "ExporterSilent", silent(health.QUARANTINED, "1d"), "10m", "warning",
            "An exporter that sent its figures within the last day does not any more",
            "Is the machine off, or did the exporter end? `exporter doctor` says more.",
        ),
    )  # fmt: skip


def rules_text(*groups: tuple[str, tuple[Rule, ...]]) -> str:
    """The rules as Prometheus loads them."""
    document = {
        "groups": [
            {"name": name, "interval": f"{_EVERY_SECONDS}s", "rules": [_rule(rule) for rule in rules]}
            for name, rules in groups
        ]
    }
    head = "# Made by `python -m deploy.grafana.make`; change deploy/grafana/alerts.py instead.\n"
    return head + yaml.safe_dump(document, sort_keys=False, width=110)


def _rule(rule: Rule) -> dict[str, object]:
    return {
        "alert": rule.name,
        "expr": rule.expression,
        "for": rule.lasting,
        "labels": {"severity": rule.severity},
        "annotations": {"summary": rule.summary, "description": rule.remedy},
    }
