"""Prometheus's own tool, where it is installed: reads rules, and answers queries about made-up series."""

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

_PROMTOOL: Final = shutil.which("promtool")
needs_promtool = pytest.mark.skipif(_PROMTOOL is None, reason="promtool is not here: apt-get install prometheus")


def answered(query: str, minutes: int) -> dict[str, Any]:
    """A check that a query has an answer after so many minutes; nothing, and what is not a number, is none."""
    return is_one(f"clamp_max(count(({query}) > 0), 1)", minutes)


def is_one(query: str, minutes: int) -> dict[str, Any]:
    """A check that the answer is a single 1."""
    return {"expr": query, "eval_time": f"{minutes}m", "exp_samples": [{"labels": "{}", "value": 1}]}


def run_tests(
    directory: Path, series: Sequence[Mapping[str, str]], checks: Sequence[Mapping[str, Any]], *rules: Path
) -> None:
    """Fails with what promtool says when a check is not met; the rules are evaluated every minute meanwhile."""
    test = {"interval": "1m", "input_series": list(series), "promql_expr_test": list(checks)}
    document = {"rule_files": [str(path) for path in rules], "evaluation_interval": "1m", "tests": [test]}
    _run("test", directory, document)


def check_rules(directory: Path, document: Mapping[str, Any]) -> None:
    """Fails with what promtool says when it cannot read the rules."""
    _run("check", directory, document)


def _run(what: str, directory: Path, document: Mapping[str, Any]) -> None:
    file = directory / f"{what}.yaml"
    file.write_text(yaml.safe_dump(document, width=10_000), encoding="utf-8")
    assert _PROMTOOL is not None
    answer = subprocess.run(
        [_PROMTOOL, what, "rules", str(file)], check=False, capture_output=True, text=True, timeout=100
    )
    assert answer.returncode == 0, (answer.stdout + answer.stderr)[-4000:]
