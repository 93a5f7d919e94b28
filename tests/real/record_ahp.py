"""Make the fixtures of what hosts keep over a restart: `python -m tests.real.record_ahp [DIRECTORY]`.

Each host plays a few sessions; what it gives of them is kept before and after a restart, reduced to what the exporter
reads, without paths, outputs and the host's own words. `moved.json` is `turns` of the classic host once more: in one of
three recordings it ended the turn behind the one that failed at once, and gave its calls and texts in the next.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
import tempfile
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from pathlib import Path
from typing import Any

from tests.real.ahp_driver import Driver
from tests.real.ahp_host import CHAT, CLASSIC, AgentHost
from tests.real.cage import Cage

FIXTURES = Path(__file__).parents[1] / "fixtures/ahp"
NAME = "5ec633bc-a325-43af-b5cb-96785ef1971c"
PLAYED = {
    "turns": ("par3", "err400", "sub_two", "hello"),
    "nested": ("sub_nest", "sub_nest_fail", "hello"),
    "cancelled": ("hello", "~mixed_slow", "hello"),
    "mixed": ("mixed", "reason", "bash_err", "hello"),
}
_KEPT = {
    *("turns", "activeTurn", "chats", "defaultChat", "id", "message", "userMessage", "text", "origin", "kind", "state"),
    *("responseParts", "content", "toolCall", "toolCallId", "toolName", "status", "success", "confirmed", "reason"),
    *("toolInput", "type", "resource", "title", "agentName", "error", "errorType", "code", "_meta", "toolKind", "chat"),
    *("subagentAgentName", "subagentDescription"),
}
_PAUSE_SECONDS = 3


def states(driver: Driver, uri: str) -> dict[str, Any]:
    """What the host gives of a session, of its conversations, and of what its tool calls name."""
    found: dict[str, Any] = {}
    wanted = [uri]
    for each in wanted:
        if each in found:
            continue
        try:
            where = {"resource": each} if driver.host.is_classic else {"channel": each}
            found[each] = driver.call("subscribe", **where)["snapshot"]["state"]
        except AssertionError:
            continue
        named = re.findall(r'"resource": "((?:ahp-|copilot:)[^"]*)"', json.dumps(found[each]))
        wanted += [one for one in named if "/subagent/" in one or one.startswith("ahp-chat:")]
        calls = re.findall(r'"toolCallId": "([^"]*)"', json.dumps(found[each])) if driver.host.is_classic else []
        wanted += [f"{uri}/subagent/{call}" for call in calls]
    return found


def reduced(value: Any) -> Any:
    """A state without what no event is made of."""
    if isinstance(value, list):
        return [reduced(each) for each in value if not (isinstance(each, dict) and each.get("type") == "terminal")]
    if not isinstance(value, dict):
        return value
    if value.get("type") == "text":
        return {"type": "text", "text": "an output"}
    kept = {key: reduced(each) for key, each in value.items() if key in _KEPT and each is not None}
    if "errorType" in value:
        kept["message"] = value["message"]
    elif "code" in value:
        kept["message"] = "an error"
    return kept


def _without_places(found: dict[str, Any], session: str, home: Path) -> dict[str, Any]:
    written = json.dumps({uri: reduced(state) for uri, state in found.items()})
    written = written.replace(str(home), "/made/up")
    own = session.rpartition("/")[2]
    for encoded in set(re.findall(r"YWhw[A-Za-z0-9_-]+", written)):
        plain = _decoded(encoded).replace(own, NAME)
        written = written.replace(encoded, urlsafe_b64encode(plain.encode()).decode().rstrip("="))
    result: dict[str, Any] = json.loads(written.replace(own, NAME))
    return result


def _decoded(encoded: str) -> str:
    return urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode()


def record(host: AgentHost, scenarios: tuple[str, ...]) -> dict[str, Any]:
    """Play a session, and keep what the host gives of it before and after a restart."""
    with Driver(host) as driver:
        session = driver.create()
        for scenario in scenarios:
            driver.turn(scenario.removeprefix("~"), cancels=scenario.startswith("~"))
        time.sleep(_PAUSE_SECONDS)  # children end after their parents
        before = states(driver, session)
    host.restart()
    with Driver(host) as driver:
        driver.open(session)
        after = states(driver, session)
    places = (session, host.home)
    return {"before": _without_places(before, *places), "after": _without_places(after, *places)}


def main() -> int:
    """Make all fixtures anew."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", nargs="?", type=Path, default=FIXTURES)
    directory = parser.parse_args().directory
    scratch = Path(tempfile.mkdtemp(prefix="record-"))
    try:
        with Cage() as cage:
            for version, name in ((CLASSIC, "classic"), (CHAT, "chat")):
                with AgentHost(cage, version, scratch / name) as host:
                    recorded = {title: record(host, scenarios) for title, scenarios in PLAYED.items()}
                (directory / f"{name}.json").write_text(json.dumps(recorded, indent=1) + "\n")
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
