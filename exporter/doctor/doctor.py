"""All checks in order: this machine, what is followed, what is remembered, where it goes; and a report of them.

The report is to send along with a question: checks, settings and status as JSON, no event content and no secret.
"""

import asyncio
import json
import os
import re
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from exporter.doctor import machine, sinks, sources, state
from exporter.doctor.check import Check, Probe, attempt, broken, described
from exporter.doctor.facts import Facts, SinkProbe


async def doctor(facts: Facts, *, schema: bool = False, bundle: Path | None = None) -> dict[str, Any]:
    """Return `{"checks": [...], "bundle": path or None}`; whatever is broken is a check and never raises.

    Writes nothing but the bundle, and into an archive's directory a file that has no name; asks each sink once. With
    `schema` every session file is read.
    """
    probing = asyncio.gather(*map(_attempted, facts.sinks))
    local, probes = await asyncio.gather(asyncio.to_thread(list, _local(facts, schema=schema)), probing)
    checks = [*local, *(check for probe in probes for check in probe.checks)]
    checks += attempt("clock", lambda: sinks.clock(probes))
    written = None
    if bundle is not None:
        try:
            write_bundle(bundle, facts, checks)
            written = str(bundle)
        except Exception as error:  # the edge: a report that cannot be written must not hide the checks
            remedy = "name a file that is not there yet, in a directory that can be written"
            checks.append(Check("bundle", "failed", f"{bundle} cannot be written: {described(error)}", remedy))
    return {"checks": [asdict(check) for check in checks], "bundle": written}


def _local(facts: Facts, *, schema: bool) -> Iterator[Check]:
    homes = {home: sources.find(home) for home in (facts.copilot_home, *facts.other_homes)}
    found = sources.together(homes.values())
    yield from attempt("versions", machine.versions)
    yield from attempt("configuration", lambda: machine.configuration(facts))
    for home, held in homes.items():
        yield from attempt("sessions", partial(sources.copilot_home, home, held))
    yield from attempt("sessions", lambda: sources.doubles(homes))
    yield from attempt("links", lambda: sources.links(found))
    yield from attempt("sources", lambda: sources.sources(facts))
    yield from attempt("Copilot CLI", lambda: sources.cli_versions(found))
    if schema:
        yield from attempt("event types", lambda: sources.event_types(facts, found))
    yield from attempt("CLI telemetry", lambda: sinks.cli_telemetry(facts))
    yield from attempt("state directory", lambda: state.state_directory(facts))
    yield from attempt("redaction key", lambda: state.redaction_key(facts))
    yield from attempt("file system", lambda: state.file_systems(facts))
    yield from attempt("disk space", lambda: state.free_space(facts))
    yield from attempt("daemon", lambda: state.daemon(facts))
    yield from attempt("service", lambda: machine.service(facts))
    yield from attempt("marks", lambda: state.marks(facts))
    yield from attempt("quarantine", lambda: state.quarantine(facts))
    yield from attempt("damaged stores", lambda: state.set_aside(facts))
    yield from attempt("file watching", lambda: machine.file_watching(len(found.files)))
    yield from attempt("open files", lambda: machine.open_files(facts.open_files))


async def _attempted(sink: SinkProbe) -> Probe:
    try:
        return await sink.probe()
    except Exception as error:  # the edge, as in `attempt`
        return Probe((broken(sink.name, error),))


def write_bundle(path: Path, facts: Facts, checks: Sequence[Check]) -> None:
    """Write the report, for this user only; raises `OSError`, also when the file is there already."""
    parts: dict[str, Any] = {"checks.json": [asdict(check) for check in checks]}
    if facts.rows:
        parts["settings.json"] = [dict(zip(("setting", "value", "origin"), row, strict=True)) for row in facts.rows]
    if facts.status is not None:
        parts["status.json"] = facts.status
    clean = _cleaner(facts)
    texts = {name: json.dumps(_each(part, clean), indent=2, ensure_ascii=False) for name, part in parts.items()}
    with os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
        try:
            with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
                for name, text in texts.items():
                    archive.writestr(name, text + "\n")
        except BaseException:
            path.unlink(missing_ok=True)
            raise


def _cleaner(facts: Facts) -> Callable[[str], str]:
    """Return what masks secrets in a text and shortens the person's home directory to `~`."""
    homes = {str(home) for home in (facts.home, facts.home and facts.home.resolve()) if home and home != Path("/")}
    if not homes:
        return facts.mask
    anywhere = re.compile("|".join(rf"{re.escape(home)}(?![\w.-])" for home in sorted(homes, key=len, reverse=True)))
    return lambda text: anywhere.sub("~", facts.mask(text))


def _each(value: Any, clean: Callable[[str], str]) -> Any:
    """Return the value with every text in it cleaned, names of members included."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {clean(str(name)): _each(member, clean) for name, member in value.items()}
    if isinstance(value, list | tuple):
        return [_each(member, clean) for member in value]
    return value if isinstance(value, int | float | None) else clean(str(value))
