"""Checks of the sources besides the CLI's files: what each can see and what not, and which servers run unobserved."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from exporter.doctor.check import Check
from exporter.doctor.facts import Facts

_SEES: Final = {
    "file": ("every durable event", "nothing that passes: no typing, no progress"),
    "tap": ("what passes, of sessions started with --experimental", "durable events, which are the file's to tell"),
    "rpc": (
        "durable events and what passes, of the sessions of that server",
        "session.usage_record while a session is loaded, and titles and branches",
    ),
}
_PORT: Final = re.compile(rb"\0(?:--headless|--server|--ui-server)\0(?:.*\0)?--port(?:\0|=)(\d{1,5})\0", re.DOTALL)


def sources(facts: Facts, processes: Path = Path("/proc")) -> Iterator[Check]:
    """Say of each source that is named what it can see; suggest, and only suggest, the servers that run here."""
    told = {str(one.get("name")): str(one.get("state") or "") for one in (facts.status or {}).get("sources", ())}
    for url in facts.sources:
        sees, sees_not = _SEES[url.partition(":")[0]]
        detail = f"sees {sees}; does not see {sees_not}"
        state = told.get(url, "")
        if url.startswith("rpc:") and state not in ("", "following", "connecting"):
            yield Check(
                f"source {url}", "warning", f"{state}; {detail}", "see that the server runs and its token is right"
            )
        else:
            yield Check(f"source {url}", "ok", f"{state}; {detail}" if state else detail)
    named = {int(url.rpartition(":")[2]) for url in facts.sources if url.startswith("rpc:")}
    for port in sorted(_ports(processes) - named):
        detail = f"a CLI server listens on port {port}; sessions of it that have no file here are not seen"
        remedy = f'to observe it, add [[source]] with url = "rpc://127.0.0.1:{port}"'
        yield Check("CLI server", "note", detail, remedy)


def _ports(processes: Path) -> set[int]:
    """Return the ports that running CLI servers were given, as far as that can be seen."""
    found: set[int] = set()
    if sys.platform != "linux":
        return found
    for path in processes.glob("[0-9]*/cmdline"):
        try:
            command = path.read_bytes()
        except OSError:
            continue
        if b"copilot" in command and (given := _PORT.search(command)) and int(given[1]):
            found.add(int(given[1]))
    return found
