"""`python -m tests.bench [ROW…] [--quick] [--write]`, and two helpers: `tune` for syslog-ng, `profile` for us."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from datetime import UTC, datetime

from tests.bench import (
    ahp_observer,
    browser_latency,
    commands,
    delivery,
    first_run,
    idle,
    latency,
    measure,
    memory,
    profiling,
    receiver_speed,
    redaction,
    report,
    rpc_observer,
    syslog_ng,
    telemetry,
)
from tests.bench.latency import PACES, Pace
from tests.bench.receiver import REPOSITORY
from tests.bench.report import Row

MEGABYTE = 1_000_000
QUICK_PACES = (Pace(100, 3, 1, 5, None), Pace(5_000, 2, None, 30, 20))


def measurements(options: argparse.Namespace) -> dict[str, Callable[[], list[Row]]]:
    """Every group of rows by its name, in the order of the table."""
    quick = bool(options.quick)
    size = (options.size_mb or (60 if quick else 300)) * MEGABYTE
    rounds = options.rounds or (1 if quick else 3)
    return {
        "redaction": lambda: redaction.rows(20 if quick else 100, 1 if quick else 5),
        "delivery": lambda: delivery.rows(size, rounds),
        "memory": lambda: memory.rows((100 if quick else 1000) * MEGABYTE),
        "latency": lambda: latency.rows(QUICK_PACES if quick else PACES),
        "rpc": lambda: rpc_observer.rows(rpc_observer.QUICK_PACES if quick else rpc_observer.PACES),
        "ahp": lambda: ahp_observer.rows(quick=quick),
        "idle": lambda: idle.rows(100 if quick else 1000, 5 if quick else 20),
        "new-session": latency.new_session_rows,
        "commands": lambda: commands.rows(5 if quick else 20),
        "telemetry": lambda: telemetry.rows(quick=quick),
        "first-run": lambda: first_run.rows(quick=quick),
        "receiver": lambda: receiver_speed.rows(quick=quick),
        "browser": lambda: browser_latency.rows(20 if quick else 150),
    }


def parse() -> argparse.Namespace:
    """The arguments; `rows` is empty for all of them."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    names = ["redaction", "delivery", "memory", "latency", "rpc", "ahp", "idle", "new-session", "commands", "telemetry"]
    names += ["first-run", "receiver", "browser", "tune", "profile"]
    parser.add_argument("rows", nargs="*", choices=[[], *names], metavar="ROW", help=", ".join(names))
    parser.add_argument("--quick", action="store_true", help="small sizes: shows that it runs, measures little")
    parser.add_argument("--size-mb", type=int, help="size of the file that is delivered (300)")
    parser.add_argument("--rounds", type=int, help="how often each one delivers it (3)")
    parser.add_argument("--real-engine", action="store_true", help="profile: with the real engine")
    parser.add_argument("--write", action="store_true", help="write the table into docs/benchmarks.md")
    return parser.parse_args()


def run(options: argparse.Namespace) -> int:
    """Measures what was asked for; a group that cannot be measured is a row that says why, and ends with 1."""
    machine, day = measure.machine(), datetime.now(UTC).strftime("%Y-%m-%d")
    rows: list[Row] = []
    broken = False
    for name, run_group in measurements(options).items():
        if options.rows and name not in options.rows:
            continue
        print(f"{name} …", file=sys.stderr, flush=True)
        try:
            rows += run_group()
        except (RuntimeError, TimeoutError, OSError) as error:
            broken = True
            rows.append(Row(name, "", f"not measured: {str(error).strip().splitlines()[-1]}", False))
            print(f"{name}: {error}", file=sys.stderr, flush=True)
    print(report.plain(rows))
    print(", ".join(f"{key} {value}" for key, value in machine.items()))
    report.write_json(REPOSITORY / "bench.json", rows, machine, day)
    if options.write:
        report.write_table(REPOSITORY / "docs" / "benchmarks.md", report.markdown(rows, machine, day))
    return 1 if broken else 0


def main() -> int:
    """Runs the helper that was named, or the benchmark."""
    options = parse()
    if "tune" in options.rows:
        return syslog_ng.tune((options.size_mb or 300) * MEGABYTE, options.rounds or 2)
    if "profile" in options.rows:
        return profiling.profile((options.size_mb or 300) * MEGABYTE, pass_through=not options.real_engine)
    return run(options)


if __name__ == "__main__":
    sys.exit(main())
