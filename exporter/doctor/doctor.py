"""All checks in order: this machine, what is followed, what is remembered, where it goes."""

import asyncio
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from exporter.doctor import machine, sessions, sinks, sources, state
from exporter.doctor.bundle import write_bundle
from exporter.doctor.check import Check, Probe, attempt, broken, described
from exporter.doctor.facts import Facts, SinkProbe
from exporter.doctor.telemetry import cli_telemetry


async def doctor(facts: Facts, *, schema: bool = False, bundle: Path | None = None) -> dict[str, Any]:
    """Return `{"checks": [...], "bundle": path or None}`; whatever is broken is a check and never raises.

    Writes nothing but the bundle, and into an archive's directory a file that has no name; asks each sink once. With
    `schema` every session file is read.
    """
    probing = asyncio.gather(*map(_attempted, facts.sinks))
    local, probes = await asyncio.gather(asyncio.to_thread(_local, facts, schema=schema), probing)
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


def _local(facts: Facts, *, schema: bool) -> list[Check]:
    return [check for group in _looks(facts, schema=schema) for check in group]


def _looks(facts: Facts, *, schema: bool) -> Iterator[list[Check]]:
    found = sessions.find(facts.copilot_home)
    yield attempt("versions", machine.versions)
    yield attempt("configuration", lambda: machine.configuration(facts))
    yield attempt("sessions", lambda: sessions.copilot_home(facts, found))
    yield attempt("sources", lambda: sources.sources(facts))
    yield attempt("Copilot CLI", lambda: sessions.cli_versions(found))
    if schema:
        yield attempt("event types", lambda: sessions.event_types(facts, found))
    yield attempt("CLI telemetry", lambda: cli_telemetry(facts))
    yield attempt("state directory", lambda: state.state_directory(facts))
    yield attempt("redaction key", lambda: state.redaction_key(facts))
    yield attempt("file system", lambda: state.file_systems(facts))
    yield attempt("disk space", lambda: state.free_space(facts))
    yield attempt("daemon", lambda: state.daemon(facts))
    yield attempt("marks", lambda: state.marks(facts))
    yield attempt("quarantine", lambda: state.quarantine(facts))
    yield attempt("damaged stores", lambda: state.set_aside(facts))
    yield attempt("file watching", lambda: machine.file_watching(len(found.files)))
    yield attempt("open files", lambda: machine.open_files(facts.open_files))


async def _attempted(sink: SinkProbe) -> Probe:
    try:
        return await sink.probe()
    except Exception as error:  # the edge, as in `attempt`
        return Probe((broken(sink.name, error),))
