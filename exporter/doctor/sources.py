"""Checks of the sources besides the CLI's files: what each can see and what not, and which servers run unobserved."""

import importlib.util
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from exporter.doctor.check import Check
from exporter.doctor.facts import Facts

_SEES: Final = {
    "file": ("every durable event", "nothing that passes: no typing, no progress"),
    "tap": ("what passes, of sessions started with --experimental", "durable events, which are the file's to tell"),
    "rpc": (
        "durable events and what passes, of the sessions of that server",
        "session.usage_record while a session is loaded, and titles and branches",
    ),
    "ahp": (
        "turns, texts, tool calls and what passes, of that host's sessions that were active in the last hour or are "
        "named; of one that has a file here, what passes",
        "hooks, compaction, totals of use, system messages, all arguments of every tool, nor the CLI's event ids",
    ),
}
_PORT: Final = re.compile(rb"\0(?:--headless|--server|--ui-server)\0(?:.*\0)?--port(?:\0|=)(\d{1,5})\0", re.DOTALL)
_HOST_PORT: Final = re.compile(rb"(?:\A|\0)VSCODE_AGENT_HOST_PORT=(\d{1,5})\0")
_NEEDS_WEBSOCKETS: Final = "pip install 'session-exporter[ahp]'"


def sources(facts: Facts, processes: Path = Path("/proc")) -> Iterator[Check]:
    """Say of each source that is named what it can see; suggest, and only suggest, the servers that run here."""
    told = {str(one.get("name")): one for one in (facts.status or {}).get("sources", ())}
    for url in facts.sources:
        yield _named(url, told.get(url, {}))
    named = {found for url in facts.sources if (found := urlsplit(url).port)}
    clis, hosts = _ports(processes)
    for port in sorted(clis - named):
        detail = f"a CLI server listens on port {port}; sessions of it that have no file here are not seen"
        remedy = f'to observe it, add [[source]] with url = "rpc://127.0.0.1:{port}"'
        yield Check("CLI server", "note", detail, remedy)
    for port in sorted(hosts - named):
        detail = f"an agent host listens on port {port}; its sessions that have no file here are not seen"
        remedy = f'to observe it, add [[source]] with url = "ahp+ws://127.0.0.1:{port}/?token_file=FILE"'
        yield Check("agent host", "note", detail, remedy)


def _named(url: str, told: Mapping[str, Any]) -> Check:
    kind = url.partition(":")[0].partition("+")[0]
    sees, sees_not = _SEES[kind]
    state, problems = str(told.get("state") or ""), [str(one.get("kind")) for one in told.get("problems", ())]
    detail = f"sees {sees}; does not see {sees_not}"
    if kind == "ahp" and importlib.util.find_spec("websockets") is None:
        return Check(f"source {url}", "failed", f"the package websockets is not installed; {detail}", _NEEDS_WEBSOCKETS)
    if kind in ("rpc", "ahp") and state not in ("", "following", "connecting"):
        remedy = "see that the server runs and its token is right"
        return Check(f"source {url}", "warning", f"{state}; {detail}", remedy)
    if kind == "ahp" and problems:
        refused = f"{problems[0]} ({len(problems)} sessions); {detail}"
        return Check(f"source {url}", "warning", refused, "see exporter status for each session")
    return Check(f"source {url}", "ok", f"{state}; {detail}" if state else detail)


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
