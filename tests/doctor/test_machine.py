"""What the doctor says of the machine: versions, limits, settings without effect."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from exporter.doctor import machine
from exporter.doctor.facts import Facts
from tests.doctor.machines import only


def test_versions_are_named() -> None:
    checks = {check.name: check for check in machine.versions()}

    assert checks["exporter"].detail
    assert f"{sys.version_info.major}.{sys.version_info.minor}." in checks["python"].detail
    assert {check.verdict for check in checks.values()} == {"ok"}


def test_notes_and_variables_without_effect_are_a_note(facts: Facts) -> None:
    noted = replace(facts, notes=("EXPORTER_COLOUR is not a setting",), found_not_used=("COPILOT_MC_BASE_URL",))

    check = only(machine.configuration(noted))

    assert check.verdict == "note"
    assert "EXPORTER_COLOUR is not a setting; COPILOT_MC_BASE_URL is set and not used" in check.detail
    assert only(machine.configuration(facts)).verdict == "ok"


@pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")
@pytest.mark.parametrize(
    ("watches", "instances", "remedy"),
    [("100", "128", ""), ("10", "128", "max_user_watches"), ("100", "0", "max_user_instances")],
)
def test_file_watching_is_compared_with_the_kernels_limits(
    tmp_path: Path, watches: str, instances: str, remedy: str
) -> None:
    (tmp_path / "max_user_watches").write_text(f"{watches}\n", encoding="ascii")
    (tmp_path / "max_user_instances").write_text(f"{instances}\n", encoding="ascii")

    check = only(machine.file_watching(50, tmp_path))

    assert check.verdict == ("warning" if remedy else "ok")
    assert remedy in check.remedy


def test_limits_that_a_container_hides_are_not_reported(tmp_path: Path) -> None:
    assert list(machine.file_watching(50, tmp_path / "hidden")) == []


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")
def test_open_files_beyond_the_limit_of_the_process_are_a_warning() -> None:
    import resource

    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, before[1]))
    try:
        few, many = only(machine.open_files(64)), only(machine.open_files(1_000))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)

    assert (few.verdict, many.verdict) == ("ok", "warning")
    assert "192" in many.remedy
