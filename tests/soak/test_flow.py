"""The short form of the soak, the leaks that it has to find, and the registry of parts."""

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

from tests.soak.figures import Series
from tests.soak.flow import soak
from tests.soak.parts import PARTS

pytestmark = pytest.mark.timeout(240)
ROOT = Path(__file__).parents[2]
_SECONDS = 20.0
_LEAK_SECONDS = 10.0


def _series(points: list[float], bound: float = 10.0) -> Series:
    return Series("figure", "MiB", 1.0, bound, points)


@pytest.mark.slow
def test_nothing_grows_and_everything_is_delivered() -> None:
    flow = soak(_SECONDS, 0.25)

    assert flow.grown() == [], flow.told()
    names = {name for _, name in flow.happened}
    assert names > {"daemon killed", "receiver killed", "store copied", "store restored", "503", "reset", "down"}
    assert len(flow.told().splitlines()) == 1 + len(flow.series)
    kept = json.loads(json.dumps(flow.kept()))
    assert all(len(one["points"]) == len(flow.series["daemon memory"].points) for one in kept["series"].values())


@pytest.mark.slow
def test_a_planted_leak_is_found() -> None:
    flow = soak(_LEAK_SECONDS, 0.25, (sys.executable, "-m", "tests.soak.leaking"))

    assert {"daemon memory", "daemon descriptors"} <= {*flow.grown()}, flow.told()


def test_a_slope_is_seen_through_outages_and_noise() -> None:
    noise = [(-1.0) ** n * (n % 7) for n in range(200)]
    flat = _series([100.0 + one for one in noise])
    outages = _series([1_000.0 if n % 20 < 5 else 100.0 + one for n, one in enumerate(noise)])
    growing = _series([100.0 + n * 0.1 + one for n, one in enumerate(noise)])
    gaps = _series([math.nan if n % 3 else 100.0 + n * 0.1 for n in range(200)])

    assert abs(flat.rise(range(200))) < 2.0
    assert abs(outages.rise(range(200))) < 2.0
    assert growing.rise(range(200)) == pytest.approx(20.0, abs=2.0)
    assert gaps.rise(range(200)) == pytest.approx(20.0, abs=2.0)
    assert flat.told(range(200)).endswith("flat")
    assert growing.told(range(200)).endswith("GROWS")


def test_the_plot_has_the_least_at_the_bottom_and_gaps_blank() -> None:
    assert _series([0.0, 1.0, 2.0, math.nan, 7.0]).plot() == "▁▂▃ █"
    assert _series([5.0, 5.0]).plot() == "▁▁"


def test_every_part_is_listed_and_takes_half_an_hour_at_most_but_the_one_that_waits_an_hour() -> None:
    listed = subprocess.run(
        [sys.executable, "-m", "tests.soak", "--list"], cwd=ROOT, capture_output=True, text=True, check=True
    )

    assert [line.split()[0] for line in listed.stdout.splitlines()] == [one.name for one in PARTS]
    assert [one.name for one in PARTS if one.minutes > 30] == ["hour"]


def test_a_part_runs_with_further_arguments_and_an_unknown_one_is_refused() -> None:
    command = [sys.executable, "-m", "tests.soak"]
    few = subprocess.run(
        [*command, "schedules", "--schedules", "20"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    unknown = subprocess.run([*command, "nothing"], cwd=ROOT, capture_output=True, text=True, check=False)

    assert few.returncode == 0, few.stdout + few.stderr
    assert "20 schedules, " in few.stdout
    assert "1 of 1 parts hold" in few.stdout
    assert unknown.returncode == 2
    assert "no part nothing" in unknown.stderr
