"""Make the fixtures of the parity test from real runs: `python -m tests.real.record [DIRECTORY]`.

Each is the log of a session and, beside it, what the CLI's own telemetry said of it. As in all fixtures there is
nothing of the CLI's prompts in them, and of the telemetry only names, ids, times and numbers.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from otel import names
from otel.names import Content
from tests.real import install
from tests.real.cage import Cage
from tests.real.capture import Capture
from tests.real.cli import Copilot
from tests.real.model import Model

FIXTURES = Path(__file__).parents[1] / "fixtures/parity"
PLAYED = ("bash", "bgboth", "sub_bg", "sub_sync", "resume")
_KEPT = frozenset(
    key for name in names.attributes() if name.content is not Content.REDACTED for key in name.spellings("both")
)


def without_texts(telemetry: Path) -> str:
    """The spans that a telemetry file tells of, without texts and without metrics."""
    lines = []
    for line in telemetry.read_bytes().splitlines():
        span = json.loads(line)
        if span["type"] != "span":
            continue
        for holder in [span, *span["events"]]:
            holder["attributes"] = {key: value for key, value in holder["attributes"].items() if key in _KEPT}
        del span["resource"]
        lines.append(json.dumps(span, separators=(",", ":")) + "\n")
    return "".join(lines)


def record(copilot: Copilot, scenario: str, directory: Path, scratch: Path) -> None:
    """Play a scenario and keep both records of it."""
    first, second = (replace(copilot, telemetry=scratch / f"{scenario}-{run}.jsonl") for run in (1, 2))
    run = first.play("hello" if scenario == "resume" else scenario)
    if scenario == "resume":
        run = second.play("bash", resume=run.session_id)
    Capture(copilot, directory).keep(scenario, run.session_id)
    (directory / scenario / "workspace.yaml").unlink()
    files = [each.telemetry for each in (first, second) if each.telemetry is not None and each.telemetry.exists()]
    (directory / scenario / "otel.jsonl").write_text("".join(map(without_texts, files)))


def main() -> int:
    """Make all fixtures anew."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", nargs="?", type=Path, default=FIXTURES)
    directory = parser.parse_args().directory
    scratch = Path(tempfile.mkdtemp(prefix="record-"))
    try:
        with Cage() as cage, Model(cage.listen()) as model:
            for version in (install.NEW, install.OLD):
                root = scratch / version
                (root / "home").mkdir(parents=True)
                copilot = Copilot(cage, model.port, root / "home", root / "scratch", version)
                for scenario in PLAYED:
                    record(copilot, scenario, directory / version, root)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
