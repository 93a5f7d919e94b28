"""Checks of what is followed: the CLI's directory, its versions, and event types that are new to us."""

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from exporter.core.events.envelope import Envelope, decode, read_object
from exporter.core.events.types import KNOWN, type_name
from exporter.core.names import JOURNALS
from exporter.doctor.check import Check, counted, described
from exporter.doctor.facts import Facts
from exporter.sources.files.session_file import EVENTS_NAME, durable_events
from exporter.sources.journals import begins_of

FIRST_VERSION: Final = (1, 0, 48)
LAST_VERSION: Final = (1, 0, 102)
_VERSIONED_SESSIONS: Final = 50
_FIRST_LINE_BYTES_MAX: Final = 1 << 20
_SCHEMA_BYTES_MAX: Final = 2 << 30
_SHOWN_MAX: Final = 20
_VERSION: Final = re.compile(r"(\d{1,6})\.(\d{1,6})\.(\d{1,6})(-[0-9A-Za-z.]{1,32})?")


@dataclass(frozen=True, slots=True)
class SessionFacts:
    """The session files that are there, newest first, and how many cannot be read."""

    files: tuple[Path, ...] = ()
    unreadable: int = 0


def find(copilot_home: Path) -> SessionFacts:
    """Return the session files below the CLI's directory; nothing where that cannot be read."""
    found: list[tuple[float, Path]] = []
    unreadable = 0
    try:
        entries = sorted((copilot_home / "session-state").iterdir())
    except OSError:
        return SessionFacts()
    for directory in entries:
        path = directory / EVENTS_NAME
        try:
            changed = path.stat().st_mtime
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError:
            unreadable += 1
            continue
        if not path.is_file():
            continue
        if os.access(path, os.R_OK):
            found.append((changed, path))
        else:
            unreadable += 1
    return SessionFacts(tuple(path for _, path in sorted(found, reverse=True)), unreadable)


def copilot_home(facts: Facts, found: SessionFacts) -> Iterator[Check]:
    """Tell whether the sessions are where we look for them."""
    name, root = "sessions", facts.copilot_home / "session-state"
    elsewhere = "if the CLI keeps its files elsewhere, set copilot_home (or COPILOT_HOME)"
    if not facts.copilot_home.exists():
        detail = f"{facts.copilot_home} is not there"
        yield Check(name, "warning", detail, f"use the Copilot CLI once; {elsewhere}")
        return
    if not root.exists():
        yield Check(name, "note", f"no session yet: {root} is not there", f"use the Copilot CLI once; {elsewhere}")
        return
    try:
        next(root.iterdir(), None)
    except OSError as error:
        remedy = f"make it readable for this user, or run as the one who owns it; {elsewhere}"
        yield Check(name, "failed", f"{root} cannot be read: {described(error)}", remedy)
        return
    detail = f"{counted(len(found.files), 'session')} in {root}"
    if found.unreadable:
        detail += f", {found.unreadable:,} more that cannot be read"
        yield Check(name, "warning", detail, "make the session files readable for this user")
    elif found.files:
        yield Check(name, "ok", detail)
    else:
        yield Check(name, "note", detail, f"use the Copilot CLI once; {elsewhere}")


def cli_versions(found: SessionFacts) -> Iterator[Check]:
    """Say which versions of the CLI wrote the newest sessions, and whether they are ones we know."""
    versions = Counter(_version_of(path) for path in found.files[:_VERSIONED_SESSIONS])
    if not versions:
        return
    name = "Copilot CLI"
    detail = ", ".join(f"{version} ({counted(number, 'session')})" for version, number in versions.most_common(5))
    strange = [version for version in versions if not _is_known(version)]
    if strange:
        known = f"{_dotted(FIRST_VERSION)} to {_dotted(LAST_VERSION)}"
        remedy = f"tested with {known}: events of other versions are delivered all the same; see `doctor --schema`"
        yield Check(name, "note", detail, remedy)
    else:
        yield Check(name, "ok", detail)


def _version_of(path: Path) -> str:
    try:
        with path.open("rb") as file:
            event = decode(file.readline(_FIRST_LINE_BYTES_MAX).rstrip(b"\r\n"))
    except OSError:
        return "unknown"
    if not isinstance(event, Envelope) or event.type != "session.start":
        return "unknown"
    version = read_object(event.data).get("copilotVersion")
    return version if isinstance(version, str) and _VERSION.fullmatch(version) else "unknown"


def _is_known(version: str) -> bool:
    match = _VERSION.fullmatch(version)
    return match is not None and FIRST_VERSION <= tuple(int(part) for part in match.groups()[:3]) <= LAST_VERSION


def _dotted(version: Iterable[int]) -> str:
    return ".".join(map(str, version))


def event_types(facts: Facts, found: SessionFacts) -> Iterator[Check]:
    """Count the durable events of types that are not in our list; they are delivered as any other.

    Of sources without files, what the running exporter has counted: the passing events and methods too.
    """
    unknown: Counter[str] = Counter()
    events = sessions = size = 0
    for path in (*found.files, *sorted((facts.state_dir / JOURNALS).glob(f"*/{EVENTS_NAME}"))):
        begins = begins_of(path) if facts.state_dir in path.parents else 0
        size += path.stat().st_size - begins
        if size > _SCHEMA_BYTES_MAX:
            break
        sessions += 1
        for envelope, _ in durable_events(path, facts.line_bytes_max, begins):
            events += 1
            if envelope.type not in KNOWN:
                unknown[type_name(envelope.type)] += 1
    yield _types("event types", unknown, f"in {counted(events, 'event')} of {counted(sessions, 'session')}")
    told = {str(one.get("name")): one for one in (facts.status or {}).get("sources", ())}
    for name in (one.url for one in facts.sources):
        if name in told:
            counts = Counter({str(type): int(count) for type, count in (told[name].get("unknown") or {}).items()})
            yield _types(f"event types of {name}", counts, "since the exporter was started")
        elif name != "file":
            detail = "what this source sends is looked at while it is observed"
            yield Check(f"event types of {name}", "note", detail, "start the exporter, then ask again")


def _types(name: str, unknown: Counter[str], where: str) -> Check:
    if not unknown:
        return Check(name, "ok", f"every type known, {where}")
    listed = ", ".join(f"{name} ×{number}" for name, number in unknown.most_common(_SHOWN_MAX))  # noqa: RUF001
    more = f" and {len(unknown) - _SHOWN_MAX} more" if len(unknown) > _SHOWN_MAX else ""
    detail = f"types unknown to our list: {listed}{more}, {where}"
    return Check(name, "note", detail, "nothing to do: they are delivered all the same")
