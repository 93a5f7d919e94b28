"""Make the list of event types from the schema that the real CLI ships: its file is what this prints.

`python -m tests.real.event_types > exporter/sources/event_types.txt`. The CLI also writes and tells types that are in
no schema; those that were met stand in `UNDECLARED`.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from tests.real import install

UNDECLARED = (
    *("model.log", "model.message", "model.messages_snapshot", "model.model_call_started", "model.model_call_success"),
    *("model.response", "model.tool_execution", "model.turn_ended", "model.turn_started"),
)
_SECONDS_MAX = 120


def types() -> list[str]:
    """Return the types, in order."""
    return sorted({*declared(_schema()), *UNDECLARED})


def declared(schema: dict[str, Any]) -> set[str]:
    """Return the types of the events of a schema; types of what is nested in events are none."""
    definitions = schema["definitions"]
    events = (definitions[one["$ref"].rpartition("/")[2]] for one in definitions["SessionEvent"]["anyOf"])
    return {str(event["properties"]["type"]["const"]) for event in events}


def _schema() -> dict[str, Any]:
    command, cache = install.command(), install.unpack_cache(install.NEW)
    found = _found(cache)
    if found is None:  # the CLI unpacks itself when it runs first
        with tempfile.TemporaryDirectory() as home:
            environment = {**os.environ, "HOME": home, "XDG_CACHE_HOME": str(cache), "COPILOT_OFFLINE": "true"}
            subprocess.run(
                [*command, "--version"], env=environment, check=True, timeout=_SECONDS_MAX, stdout=subprocess.DEVNULL
            )
        found = _found(cache)
    assert found is not None, "the CLI ships no schema of its events"
    schema: dict[str, Any] = json.loads(found.read_bytes())
    return schema


def _found(cache: Path) -> Path | None:
    return next(iter(cache.glob(f"copilot/pkg/*/{install.NEW}/schemas/session-events.schema.json")), None)


if __name__ == "__main__":
    print("\n".join(types()))
