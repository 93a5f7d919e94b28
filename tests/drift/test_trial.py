"""Four changes that CONTRIBUTING explains, made on a copy of the tree: whole they pass, half done a check fails.

A change is a list of edits: a file, the text to find (empty: a new file), and the text to put there.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from tests.drift.repository import ROOT, files, text

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
_LEFT_OUT: Final = (".png", ".lock", ".gz")
Edit = tuple[str, str, str]


@dataclass(frozen=True)
class Trial:
    """`commands` make what is generated. `row` is where CONTRIBUTING begins to explain the change."""

    row: str
    edits: tuple[Edit, ...]
    checks: tuple[str, ...]
    commands: tuple[str, ...] = ()


METRIC: Final = Trial(
    "a metric from an event that is known",
    (
        (
            "otel/instruments.py",
            "SESSION_DURATION: Final = _seconds(",
            'TRIAL: Final = _counter("github.copilot.trial.count", "{session}", (), "sessions in a trial")\n'
            "SESSION_DURATION: Final = _seconds(",
        ),
        (
            "otel/machines/metrics/machine.py",
            "    meter.note(metric.SESSIONS, 1,",
            '    meter.note(metric.TRIAL, 1 if event.type == "session.resume" else None)\n'
            "    meter.note(metric.SESSIONS, 1,",
        ),
    ),
    ("tests/drift/test_metrics_table.py", "tests/otel/test_names.py"),
    ("tests.drift.metrics_table > docs/metrics.md",),
)
RULE: Final = Trial(
    "a redaction rule with context",
    (
        (
            "redaction/rules/context/products.toml",
            """[[rule]]
id = "fernet-key\"""",
            """[[rule]]
id = "acme-answer"
provider = "Acme"
name = "deploy key, typed in"
gates = ["Acme deploy key: {0,2}[a-z0-9]{32}"]
extract = "match"
length = 32
pattern = "[a-z0-9]{32}(?![0-9A-Za-z])"
demand = "key"
example = "Acme deploy key: <base36:32>"
counter = "Acme deploy key: <base36:12>"

[[rule]]
id = "fernet-key\"""",
        ),
    ),
    ("tests/redaction/rules/context/test_table.py", "tests/redaction/rules/context/test_extraction.py"),
)
COLUMN: Final = Trial(
    "a column on the sessions page",
    (
        (
            "exporter/missioncontrol/pages/templates/sessions.html",
            '"Upload lag", "Host")',
            '"Upload lag", "Trial", "Host")',
        ),
        (
            "exporter/missioncontrol/pages/templates/sessions.html",
            '<td data-name="Host">',
            '<td data-name="Trial">{{ session.branch or "" }}</td>\n          <td data-name="Host">',
        ),
    ),
    ("tests/missioncontrol/pages/test_pages.py",),
)
SINK: Final = Trial(
    "a sink",
    (
        (
            "exporter/wiring/sinks/copies.py",
            "",
            text("exporter/wiring/sinks/archive.py")
            .replace('_SECTION: Final = "archive"', '_SECTION: Final = "copies"')
            .replace("to compressed files in a directory ([format](archive.md))", "to a second archive"),
        ),
        ("exporter/wiring/sinks/registry.py", "import archive, embedded", "import archive, copies, embedded"),
        ("exporter/wiring/sinks/registry.py", "    archive.KIND,\n", "    archive.KIND,\n    copies.KIND,\n"),
        (
            "config/settings.py",
            "    redaction: Redaction = field(",
            "    copies: dict[str, Archive] = field(default_factory=dict)\n    redaction: Redaction = field(",
        ),
        (
            "config/settings.py",
            "    redaction: What is masked besides",
            "    copies: Where copies of sessions are kept; for more than one, [copies.NAME] each.\n"
            "    redaction: What is masked besides",
        ),
        ("README.md", "| `[archive]` |", "| `[copies]` | every durable event | files |\n| `[archive]` |"),
        (
            "docs/sinks.md",
            "<!-- sinks:end -->",
            "| `[copies]` | every durable event, to a second archive |\n<!-- sinks:end -->",
        ),
        (
            "tests/sinks/test_contract.py",
            "def test_a_part_that_is_renamed_is_noticed",
            """class TestCopies(TestArchive):
    section = "copies"


def test_a_part_that_is_renamed_is_noticed""",
        ),
    ),
    ("tests/wiring/test_sinks.py", "tests/config/test_generated.py"),
    ("config.example > config/exporter.example.toml", "config.schema > config/exporter.schema.json"),
)


@pytest.fixture
def copy(tmp_path: Path) -> Iterator[Path]:
    """A copy of what is in the repository."""
    place = tmp_path / "copy"
    for path in files():
        if path.suffix not in _LEFT_OUT:
            target = place / path.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
    yield place
    shutil.rmtree(place)


def make(copy: Path, trial: Trial, without: str = "", commands: bool = True) -> None:
    """Make the change, without the edits of files whose names hold `without`."""
    for name, old, new in trial.edits:
        if without and without in name:
            continue
        path = copy / name
        if not old:
            path.write_text(new, encoding="utf-8")
            continue
        before = path.read_text(encoding="utf-8")
        assert before.count(old) == 1, f"{name} has {before.count(old)} times {old!r}"
        path.write_text(before.replace(old, new), encoding="utf-8")
    for command in trial.commands if commands else ():
        module, _, target = command.partition(" > ")
        made = run(copy, "-m", module)
        assert made.returncode == 0, made.stderr
        (copy / target).write_text(made.stdout, encoding="utf-8")


def run(copy: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python in the copy."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "PYTHONPATH"))}
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=copy, env=environ, check=False, capture_output=True, text=True)


def checked(copy: Path, trial: Trial) -> subprocess.CompletedProcess[str]:
    """Run the checks that CONTRIBUTING names for the change."""
    return run(copy, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", *trial.checks)


@pytest.mark.parametrize("trial", [METRIC, RULE, COLUMN, SINK], ids=lambda trial: trial.row)
def test_a_whole_change_passes_its_checks(copy: Path, trial: Trial) -> None:
    assert f"| {trial.row} |" in text("CONTRIBUTING.md")
    make(copy, trial)

    result = checked(copy, trial)

    assert result.returncode == 0, result.stdout[-4000:]


@pytest.mark.parametrize(
    ("trial", "without", "commands", "said"),
    [
        (METRIC, "", False, "test_every_metric_is_documented"),
        (METRIC, "machine.py", True, "test_every_metric_is_filled_by_a_machine"),
        (SINK, "registry.py", True, "test_every_table_of_sinks_in_the_settings_is_registered"),
        (SINK, "test_contract.py", True, "test_it_keeps_the_contract"),
        (SINK, "README.md", True, "test_the_readme_says_what_goes_there"),
        (SINK, "docs/sinks.md", True, "test_the_table_in_the_docs_is_the_one_of_the_registry"),
        (SINK, "", False, "test_the_schema_in_the_package_is_the_generated_one"),
    ],
    ids=lambda value: value.row if isinstance(value, Trial) else str(value),
)
def test_a_half_done_change_fails(copy: Path, trial: Trial, without: str, commands: bool, said: str) -> None:
    make(copy, trial, without, commands)

    result = checked(copy, trial)

    assert result.returncode == 1, result.stdout[-4000:]
    assert said in result.stdout


@pytest.mark.parametrize(
    ("trial", "name", "old", "new", "said"),
    [
        (
            RULE,
            "redaction/rules/context/products.toml",
            'counter = "Acme deploy key: <base36:12>"',
            'counter = ""',
            "counter",
        ),
        (COLUMN, "exporter/missioncontrol/pages/templates/sessions.html", '"Trial", ', "", "heading_and_a_cell"),
        (SINK, "exporter/wiring/sinks/copies.py", "    probe=_probe,\n", "", "the_doctor_looks_at_it"),
    ],
    ids=["a rule without a counter example", "a column without a heading", "a sink without a check of doctor"],
)
def test_a_change_with_a_part_missing_fails(copy: Path, trial: Trial, name: str, old: str, new: str, said: str) -> None:
    make(copy, trial)
    path = copy / name
    path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")

    result = checked(copy, trial)

    assert result.returncode == 1, result.stdout[-4000:]
    assert said in result.stdout
