"""What is here: sessions and their state, for `sessions`, `status` and the reports to receivers."""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from exporter.core.events.summary import Summary
from exporter.sources.files.cli_process import has_crashed
from exporter.sources.files.session_file import EVENTS_NAME, durable_events
from exporter.sources.files.source import WORKSPACE_NAME
from exporter.sources.files.workspace import Workspace, read_workspace


def session_object(
    directory: Path, redact_text: Callable[[str], str], line_bytes_max: int, host: str | None, begins: int = 0
) -> dict[str, Any] | None:
    """Describe one session directory from its files, titles and names redacted; None when it has no events.

    `begins` is where the first event stands in a journal whose front was cut off. A line that repeats an id counts as
    a duplicate and as nothing else.
    """
    summary, last_id = Summary(), None
    now, written = time.time(), _modified(directory / EVENTS_NAME)
    times = str(iso(now)), iso(min(now, written or now))
    seen, duplicates = set[str](), 0
    for envelope, _ in durable_events(directory / EVENTS_NAME, line_bytes_max, begins):
        if envelope.id in seen:
            duplicates += 1
            continue
        seen.add(envelope.id)
        summary.add(envelope, *times)
        last_id = envelope.id
    if last_id is None:
        return None
    workspace = read_workspace(str(directory / WORKSPACE_NAME))
    described = summary.as_session(directory.name, masked=0, host=host, last_event_id=last_id)
    described.update(workspace_facts(workspace))
    described["file"] = str(directory / EVENTS_NAME)
    described["source"] = "files"
    if duplicates:
        described["duplicates"] = duplicates
    if described["state"] != "ended" and has_crashed(directory):
        described["state"] = "crashed"
    for name in ("title", "repository", "branch", "cwd", "model"):
        if described.get(name):
            described[name] = redact_text(str(described[name]))
    return described


def workspace_facts(workspace: Workspace | None) -> dict[str, str]:
    """Return what workspace.yaml knows better than the events, not redacted."""
    if workspace is None:
        return {}
    facts = {
        "title": workspace.title,
        "repository": workspace.repository,
        "branch": workspace.branch,
        "cwd": workspace.cwd,
        "mc_task_id": workspace.mc_task_id,
        "mc_session_id": workspace.mc_session_id,
        "mc_last_event_id": workspace.mc_last_event_id,
    }
    return {name: value for name, value in facts.items() if value}


def iso(moment: float | None) -> str | None:
    """Return a time of the wall clock as text, in UTC."""
    if moment is None:
        return None
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _modified(path: Path) -> float | None:
    try:
        return path.stat().st_mtime
    except OSError:
        return None
