"""The package `redaction` made into what the core asks of a redactor."""

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from exporter.core.redacted import Masked, Redacted, Refused
from exporter.daemon.running import Redaction
from exporter.store.key import redaction_key
from redaction import engine as results
from redaction.known import from_environ, from_files
from redaction.search import Allowed

if TYPE_CHECKING:
    from config.settings import Settings


def make_redaction(settings: "Settings") -> Redaction:
    """Compile the redactor with this installation's key and the values that must never leave."""
    return adapt(_engine(settings, redaction_key(Path(settings.state_dir))), settings.redaction.budget_ms)


def make_redaction_without_key(settings: "Settings") -> Redaction:
    """Compile a redactor whose markers hold for this run only, and write nothing."""
    return adapt(_engine(settings, None), settings.redaction.budget_ms)


def _engine(settings: "Settings", key: bytes | None) -> results.Engine:
    rules = settings.redaction
    files = [*rules.known_files, *(one.token_file for one in settings.mission_control.values() if one.token_file)]
    known: list[bytes | str] = [
        *from_environ(os.environ, rules.known_env),
        *from_files(Path(name) for name in files),
        *(one.token for one in settings.mission_control.values() if one.token),
    ]
    allowed = [
        Allowed(one.value, re.compile(one.regex) if one.regex else None, one.rule)
        for one in rules.allow
        if not one.path
    ]
    return results.Engine(key, known, allowed)


def adapt(engine: results.Redactor, budget_ms: float) -> Redaction:
    """Return an engine in the form that the core asks for."""
    clean, masked, redact = results.CLEAN, results.Masked, engine.redact

    def event(line: bytes, /) -> Redacted:
        result = redact(line, budget_ms)
        if result is clean:
            return line
        if isinstance(result, masked):
            return Masked(result.line, tuple(finding.rule for finding in result.findings))
        return Refused(result.reason if isinstance(result, results.Refused) else "redactor_failed")

    return Redaction(event, engine.redact_text)
