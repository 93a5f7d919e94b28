"""Checks of the sources besides the CLI's files: what each can see and what not, and which servers run unobserved."""

import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from exporter.doctor.check import Check
from exporter.doctor.facts import Facts, SourceFacts

_PORT: Final = re.compile(rb"\0(?:--headless|--server|--ui-server)\0(?:.*\0)?--port(?:\0|=)(\d{1,5})\0", re.DOTALL)
_HOST_PORT: Final = re.compile(rb"(?:\A|\0)VSCODE_AGENT_HOST_PORT=(\d{1,5})\0")


def sources(facts: Facts, processes: Path = Path("/proc")) -> Iterator[Check]:
    """Say of each source that is named what it can see; suggest, and only suggest, the servers that run here."""
    told = {str(one.get("name")): one for one in (facts.status or {}).get("sources", ())}
    for one in facts.sources:
        yield _named(one, told.get(one.url, {}))
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


def _named(one: SourceFacts, told: Mapping[str, Any]) -> Check:
    name, kind = f"source {one.url}", one.url.partition(":")[0].partition("+")[0]
    state, problems = str(told.get("state") or ""), [str(one.get("kind")) for one in told.get("problems", ())]
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
