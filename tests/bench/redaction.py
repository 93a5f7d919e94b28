"""What redaction costs: beside Kingfisher and detect-secrets used the plain way, and against its own promises.

Speeds are megabytes per CPU second of whole programs, each less what it costs to start (measured on an empty file).
Programs that are compared take turns, and medians are compared.
"""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.bench import measure, planted, real_text
from tests.bench.generate import cache_directory
from tests.bench.planted import PlantedFile
from tests.bench.receiver import REPOSITORY
from tests.bench.report import Row

MEGABYTE = 1_000_000
KINGFISHER_MIN = 2.0
KINGFISHER_ON_TEXT_MIN = 1.5
ENGINE_MIN, PROGRAM_MIN = 0.7, 0.6
TRIGGERS_MIN = 120
SPEED_MIN = {4: 250, 60: 100}
RSS_MAX_MB = 60
START_MAX_SECONDS = {True: 0.15, False: 5.0}
EMPTY = "empty.jsonl"
FOUND = 200
"""Kingfisher's exit code when it found something."""

Command = Sequence[str]


@dataclass(frozen=True, slots=True)
class Cost:
    """The median of several runs."""

    cpu_seconds: float
    wall_seconds: float
    output: dict[str, float]
    """What the last run said; empty for programs that say nothing of use."""


def rows(megabytes: int, rounds: int) -> list[Row]:
    """All rows; the long files have `megabytes` each, and the others follow from that."""
    small_ones = [planted.cached(MEGABYTE, 4, seed) for seed in range(1, megabytes // 2 + 1)]
    large_ones = [planted.cached(10 * MEGABYTE, 4, seed) for seed in range(1, megabytes // 10 + 1)]
    real, triggers = real_text.real(megabytes // 5), real_text.with_triggers(megabytes // 5)
    return [
        *_text("real text", real, rounds, None),
        *_text("text with trigger words", triggers, rounds, TRIGGERS_MIN),
        *_beside_kingfisher("1 MB", small_ones, rounds, KINGFISHER_MIN),
        *_beside_kingfisher("10 MB", large_ones, rounds, None),
        _beside_detect_secrets(small_ones[0], rounds),
        *(_speed(planted.cached(megabytes * MEGABYTE, density), density, rounds) for density in SPEED_MIN),
        _small_events(planted.small(max(2, megabytes // 10) * MEGABYTE), rounds),
        _memory(),
        *(_start(rounds, cached=cached) for cached in (True, False)),
    ]


def redactor(mode: str, files: Sequence[str], cache_dir: Path | None = None) -> Command:
    """Our program over these files."""
    directory = cache_dir or cache_directory() / "rules"
    return [sys.executable, "-m", "tests.bench.redact_files", str(directory), mode, *files]


def kingfisher(files: Sequence[str]) -> Command:
    """Kingfisher over these files: one thread, nothing sent anywhere, compiled rules from its cache as with ours."""
    beside = Path(sys.executable).with_name("kingfisher")
    program = str(beside) if beside.exists() else shutil.which("kingfisher")
    if program is None:
        raise RuntimeError("there is no kingfisher here: pip install kingfisher-bin")
    options = ["--jobs=1", "--no-validate", "--no-update-check", "--quiet", "--git-history=none"]
    cache_dir = f"--rule-cache-dir={cache_directory() / 'kingfisher'}"
    return [program, "scan", *options, cache_dir, "--format=jsonl", "--output=/dev/null", *files]


def costs(commands: Mapping[str, Command], rounds: int) -> dict[str, Cost]:
    """What each command costs; they take turns, and the first turn, which fills caches, does not count."""
    taken: dict[str, list[measure.Finished]] = {name: [] for name in commands}
    said: dict[str, dict[str, float]] = {}
    for turn in range(rounds + 1):
        for name, command in commands.items():
            finished, said[name] = _run(command)
            if turn:
                taken[name].append(finished)
    return {
        name: Cost(
            statistics.median(one.cpu_seconds for one in runs),
            statistics.median(one.wall_seconds for one in runs),
            said[name],
        )
        for name, runs in taken.items()
    }


def _run(command: Command) -> tuple[measure.Finished, dict[str, float]]:
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        started = time.monotonic()
        process = subprocess.Popen(command, cwd=REPOSITORY, stdout=output, stderr=errors)
        finished = measure.wait(process, started)
        output.seek(0)
        errors.seek(0)
        if finished.exit_code not in (0, FOUND):
            raise RuntimeError(errors.read().decode(errors="replace")[-2000:] or f"{command[0]}: {finished.exit_code}")
        text = output.read()
    return finished, json.loads(text) if text.startswith(b"{") else {}


def _empty() -> list[str]:
    path = cache_directory() / EMPTY
    path.touch()
    return [str(path)]


def _beside_kingfisher(what: str, files: Sequence[PlantedFile], rounds: int, target: float | None) -> list[Row]:
    names = [file.path for file in files]
    megabytes = sum(file.size_bytes for file in files) / MEGABYTE
    label = f"redaction of {len(files)} x {what}, CPU, to kingfisher"
    promised = f"≥ {target:g} x" if target else ""
    try:
        commands = {
            "ours": redactor("redact", names),
            "ours, start": redactor("redact", _empty()),
            "theirs": kingfisher(names),
            "theirs, start": kingfisher(_empty()),
        }
        cost = costs(commands, rounds)
    except RuntimeError as error:
        return [Row(label, promised, f"not measured: {str(error).strip().splitlines()[-1]}", False if target else None)]
    ours = cost["ours"].cpu_seconds - cost["ours, start"].cpu_seconds
    theirs = cost["theirs"].cpu_seconds - cost["theirs, start"].cpu_seconds
    figures: dict[str, object] = {name: round(one.cpu_seconds, 3) for name, one in cost.items()}
    figures |= {"planted": sum(file.secrets for file in files), "masked": cost["ours"].output["found"]}
    measured = f"{theirs / ours:.2f} x ({megabytes / ours:.0f} against {megabytes / theirs:.0f} MB/s)"
    return [Row(label, promised, measured, theirs / ours >= target if target else None, figures)]


def _beside_detect_secrets(file: PlantedFile, rounds: int) -> Row:
    """On a fifth of a megabyte, as more would take minutes."""
    path = cache_directory() / "fifth.jsonl"
    lines: list[bytes] = []
    with Path(file.path).open("rb") as source:
        while sum(map(len, lines)) < MEGABYTE / 5:
            lines.append(source.readline())
    path.write_bytes(b"".join(lines))
    theirs = [sys.executable, "-m", "tests.bench.scan_lines"]
    ours = [file.path] * 20  # enough to measure
    commands = {
        "ours": redactor("redact", ours),
        "ours, start": redactor("redact", _empty()),
        "theirs": [*theirs, str(path)],
        "theirs, start": [*theirs, *_empty()],
    }
    cost = costs(commands, 1 if rounds == 1 else 2)
    our_speed = 20 * file.size_bytes / MEGABYTE / (cost["ours"].cpu_seconds - cost["ours, start"].cpu_seconds)
    their_seconds = cost["theirs"].cpu_seconds - cost["theirs, start"].cpu_seconds
    their_speed = path.stat().st_size / MEGABYTE / their_seconds
    return Row(
        "redaction, CPU, to detect-secrets line by line",
        "",
        f"{our_speed / their_speed:,.0f} x ({our_speed:.0f} against {their_speed:.3f} MB/s)",
        None,
        {name: round(one.cpu_seconds, 3) for name, one in cost.items()},
    )


def _speeds(file: PlantedFile, rounds: int) -> tuple[float, float, dict[str, object]]:
    """Megabytes per CPU second end to end and of the gates alone, and the figures behind them."""
    commands = {
        "redact": redactor("redact", [file.path]),
        "scan": redactor("scan", [file.path]),
        "start": redactor("redact", _empty()),
    }
    cost = costs(commands, rounds)
    megabytes = file.size_bytes / MEGABYTE
    whole, scan = (megabytes / (cost[name].cpu_seconds - cost["start"].cpu_seconds) for name in ("redact", "scan"))
    figures: dict[str, object] = {name: round(one.cpu_seconds, 3) for name, one in cost.items()}
    figures |= {"planted": file.secrets, "masked": cost["redact"].output["found"], **cost["redact"].output}
    return whole, scan, figures | {"hits": cost["scan"].output["found"]}


def _speed(file: PlantedFile, density: int, rounds: int) -> Row:
    whole, scan, figures = _speeds(file, rounds)
    return Row(
        f"redaction of {file.size_bytes / MEGABYTE:.0f} MB with {density} secrets per MB",
        f"≥ {SPEED_MIN[density]} MB/s",
        f"{whole:.0f} MB/s (gates alone {scan:.0f})",
        whole >= SPEED_MIN[density],
        figures,
    )


def _text(what: str, files: Sequence[PlantedFile], rounds: int, speed_min: int | None) -> list[Row]:
    """Text of others beside Kingfisher, and what is left of the speed of the gates in process and as a program."""
    names = [file.path for file in files]
    commands = {
        "program": redactor("redact", names),
        "engine": redactor("redact-again", names),
        "gates": redactor("scan-again", names),
        "start": redactor("redact", _empty()),
    }
    cost = costs(commands, rounds)
    megabytes = sum(file.size_bytes for file in files) / MEGABYTE
    engine, gates = (megabytes / cost[name].output["work_seconds"] for name in ("engine", "gates"))
    program = megabytes / (cost["program"].cpu_seconds - cost["start"].cpu_seconds)
    holds = engine >= ENGINE_MIN * gates and program >= PROGRAM_MIN * gates and program >= (speed_min or 0)
    speed = f", ≥ {speed_min} MB/s" if speed_min else ""
    shares = f"engine {engine:.0f} MB/s ({engine / gates:.2f}), program {program:.0f} MB/s ({program / gates:.2f})"
    figures: dict[str, object] = {name: round(one.cpu_seconds, 3) for name, one in cost.items()}
    return [
        *_beside_kingfisher(f"1 MB, {what}", files, rounds, KINGFISHER_ON_TEXT_MIN),
        Row(
            f"redaction of {what}, {megabytes:.0f} MB, to its gates alone",
            f"engine ≥ {ENGINE_MIN:g}, program ≥ {PROGRAM_MIN:g}{speed}",
            f"{shares}, gates {gates:.0f} MB/s",
            holds,
            figures | {**cost["program"].output},
        ),
    ]


def _small_events(file: PlantedFile, rounds: int) -> Row:
    whole, scan, figures = _speeds(file, rounds)
    each = 1e6 * file.size_bytes / MEGABYTE / whole / file.events
    return Row(
        f"redaction of events of {file.size_bytes / file.events:.0f} bytes",
        "",
        f"{whole:.0f} MB/s, {each:.1f} µs each (gates alone {scan:.0f})",
        None,
        figures,
    )


def _memory() -> Row:
    """A fresh process with its rules from the cache; after much work beside it, as rules are made when they are met."""
    _run(redactor("redact", _empty()))
    _, fresh = _run(redactor("redact", _empty()))
    _, worked = _run(redactor("redact", [planted.cached(10 * MEGABYTE, 60).path]))
    loaded = fresh["rss_loaded_bytes"] / MEGABYTE
    return Row(
        f"redaction: memory (RSS) with {fresh['rules']} rules loaded",
        f"≤ {RSS_MAX_MB} MB",
        f"{loaded:.0f} MB ({worked['rss_end_bytes'] / MEGABYTE:.0f} after 600 secrets)",
        loaded <= RSS_MAX_MB,
        {**fresh, "rss_worked_bytes": worked["rss_end_bytes"]},
    )


def _start(rounds: int, *, cached: bool) -> Row:
    """The whole process on an empty file, Python's own start included."""
    with tempfile.TemporaryDirectory() as directory:
        taken = []
        for _ in range(1 + (rounds if cached else 0)):
            finished, _ = _run(redactor("redact", _empty(), None if cached else Path(directory) / "rules"))
            taken.append(finished.wall_seconds)
    runs = taken[1:] if cached else taken
    middle, best = statistics.median(runs), min(runs)
    return Row(
        f"redaction: start {'with' if cached else 'without'} the compiled rules in the cache, median (best)",
        f"≤ {START_MAX_SECONDS[cached]:g} s",
        f"{middle:.2f} ({best:.2f}) s",
        middle <= START_MAX_SECONDS[cached],
        {"wall_seconds": [round(one, 3) for one in taken]},
    )
