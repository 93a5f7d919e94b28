"""Checks of what is followed: the CLI's directory, its versions, event types that are new to us, and other sources.

Of a source that is no file: what it can see and what not; and which servers run unobserved.
"""

import os
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from exporter.core.events.envelope import Envelope, decode, read_object
from exporter.core.names import JOURNALS
from exporter.doctor.check import Check, counted, described
from exporter.doctor.facts import Facts, SourceFacts
from exporter.sources.event_types import KNOWN, type_name
from exporter.sources.files.session_file import EVENTS_NAME, durable_events, leads_out, open_inside
from exporter.sources.journals import begins_of

FIRST_VERSION: Final = (1, 0, 48)
LAST_VERSION: Final = (1, 0, 102)
_VERSIONED_SESSIONS: Final = 50
_FIRST_LINE_BYTES_MAX: Final = 1 << 20
_SCHEMA_BYTES_MAX: Final = 2 << 30
_SHOWN_MAX: Final = 20
_PORT: Final = re.compile(rb"\0(?:--headless|--server|--ui-server)\0(?:.*\0)?--port(?:\0|=)(\d{1,5})\0", re.DOTALL)
_HOST_PORT: Final = re.compile(rb"(?:\A|\0)VSCODE_AGENT_HOST_PORT=(\d{1,5})\0")
_VERSION: Final = re.compile(r"(\d{1,6})\.(\d{1,6})\.(\d{1,6})(-[0-9A-Za-z.]{1,32})?")


@dataclass(frozen=True, slots=True)
class SessionFacts:
    """The session files that are there, newest first, how many cannot be read, and links instead of them."""

    files: tuple[Path, ...] = ()
    unreadable: int = 0
    links: tuple[Path, ...] = ()


def find(copilot_home: Path) -> SessionFacts:
    """Return the session files below the CLI's directory; nothing where that cannot be read."""
    found: list[tuple[float, Path]] = []
    unreadable, links = 0, []
    try:
        entries = sorted((copilot_home / "session-state").iterdir())
    except OSError:
        return SessionFacts()
    for directory in entries:
        path = directory / EVENTS_NAME
        links += [one for one in (directory, path) if one.is_symlink() and one.exists()]
        if leads_out(path):
            continue
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
    return SessionFacts(tuple(path for _, path in sorted(found, reverse=True)), unreadable, tuple(links))


def together(some: Iterable[SessionFacts]) -> SessionFacts:
    """Return what was found in several directories as one, newest first."""
    found = list(some)
    files = sorted((path for one in found for path in one.files), key=_changed, reverse=True)
    links = tuple(path for one in found for path in one.links)
    return SessionFacts(tuple(files), sum(one.unreadable for one in found), links)


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def doubles(homes: Mapping[Path, SessionFacts]) -> Iterator[Check]:
    """Name the sessions that several directories have: they are followed in one."""
    places: dict[str, list[Path]] = {}
    for found in homes.values():
        for path in found.files:
            places.setdefault(path.parent.name, []).append(path.parent)
    twice = {session: paths for session, paths in places.items() if len(paths) > 1}
    for session, paths in list(twice.items())[:_SHOWN_MAX]:
        detail = f"session {session} is in {' and in '.join(map(str, paths))}; it is delivered from one of them"
        yield Check("session", "warning", detail, "a copied home? remove one of the two directories")


def links(found: SessionFacts) -> Iterator[Check]:
    """Say which links are there instead of session directories and files, and which of them are not followed."""
    for path in found.links[:_SHOWN_MAX]:
        if path.name == EVENTS_NAME and leads_out(path):
            detail = f"{path} is a link out of its directory and is not followed: {path.resolve()}"
            yield Check("link", "warning", detail, "put the file itself there, or make its session directory a link")
        else:
            yield Check("link", "note", f"{path} is a link and is followed: {path.resolve()}")


def copilot_home(home: Path, found: SessionFacts) -> Iterator[Check]:
    """Check whether the sessions are where we look for them."""
    name, root = "sessions", home / "session-state"
    elsewhere = "if the CLI keeps its files elsewhere, set copilot_home (or COPILOT_HOME)"
    if not _is_there(home):
        detail = f"{home} is not there"
        yield Check(name, "warning", detail, f"use the Copilot CLI once; {elsewhere}")
        return
    if not _is_there(root):
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


def _is_there(path: Path) -> bool:
    """Tell whether there is something, or may be: nobody can look into a closed directory."""
    try:
        path.stat()  # Path.exists says False of a closed directory since Python 3.14
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


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
        with open(path, "rb", opener=open_inside) as file:
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
    reported = _reported(facts)
    for name in (one.url for one in facts.sources):
        if name in reported:
            counts = Counter({str(type): int(count) for type, count in (reported[name].get("unknown") or {}).items()})
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


def sources(facts: Facts, processes: Path = Path("/proc")) -> Iterator[Check]:
    """Say of each source that is named what it can see; suggest, and only suggest, the servers that run here."""
    reported = _reported(facts)
    for one in facts.sources:
        yield _named(one, reported.get(one.url, {}))
    named = {found for one in facts.sources if (found := urlsplit(one.url).port)}
    clis, hosts = _ports(processes)
    for port in sorted(clis - named):
        detail = f"a CLI server listens on port {port}; sessions of it that have no file here are not seen"
        remedy = f'to observe it, add [[source]] with url = "rpc://127.0.0.1:{port}"'
        yield Check("CLI server", "note", detail, remedy)
    for port in sorted(hosts - named):
        detail = f"an agent host listens on port {port}; its sessions that have no file here are not seen"
        remedy = f'to observe it, add [[source]] with url = "ahp+ws://127.0.0.1:{port}/?token_file=FILE"'
        yield Check("agent host", "note", detail, remedy)


def _reported(facts: Facts) -> dict[str, Mapping[str, Any]]:
    """Return what the running exporter says of its sources, by their names."""
    return {str(one.get("name")): one for one in (facts.status or {}).get("sources", ())}


def _named(one: SourceFacts, reported: Mapping[str, Any]) -> Check:
    name, kind = f"source {one.url}", one.url.partition(":")[0].partition("+")[0]
    state, problems = str(reported.get("state") or ""), [str(one.get("kind")) for one in reported.get("problems", ())]
    detail = f"sees {one.sees}; does not see {one.sees_not}"
    if one.missing:
        remedy = f"pip install 'session-exporter[{kind}]'"
        return Check(name, "failed", f"the package {one.missing} is not installed; {detail}", remedy)
    if one.is_server and state not in ("", "following", "connecting"):
        return Check(name, "warning", f"{state}; {detail}", "see that the server runs and its token is right")
    if kind == "ahp" and problems:
        refused = f"{problems[0]} ({len(problems)} sessions); {detail}"
        return Check(name, "warning", refused, "see exporter status for each session")
    return Check(name, "ok", f"{state}; {detail}" if state else detail)


def _ports(processes: Path) -> tuple[set[int], set[int]]:
    """Return the ports that running CLI servers and agent hosts were given, as far as that can be seen."""
    clis: set[int] = set()
    hosts: set[int] = set()
    if sys.platform != "linux":
        return clis, hosts
    for path in processes.glob("[0-9]*/cmdline"):
        try:
            command = path.read_bytes()
            if b"copilot" in command and (given := _PORT.search(command)):
                clis.add(int(given[1]))
            elif b"agentHost" in command and (given := _HOST_PORT.search(path.with_name("environ").read_bytes())):
                hosts.add(int(given[1]))
        except OSError:
            continue
    return clis - {0}, hosts - {0}
