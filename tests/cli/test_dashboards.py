"""`exporter dashboards export` writes what the package holds, and never over somebody's own file unasked."""

import json
from pathlib import Path

from exporter.errors import Exit
from tests.cli.program import ROOT, exporter

SHIPPED = ROOT / "exporter" / "grafana"


def test_everything_is_written_as_it_is_shipped(tmp_path: Path) -> None:
    answer = exporter("dashboards", "export", str(tmp_path / "a" / "b"), "--json")

    assert answer.returncode == Exit.DONE, answer.stderr
    files = json.loads(answer.stdout)["files"]
    assert set(files) == {path.relative_to(SHIPPED).as_posix() for path in SHIPPED.rglob("*") if path.is_file()}
    assert all((tmp_path / "a" / "b" / name).read_bytes() == (SHIPPED / name).read_bytes() for name in files)


def test_a_second_time_changes_nothing(tmp_path: Path) -> None:
    exporter("dashboards", "export", str(tmp_path))
    again = exporter("dashboards", "export", str(tmp_path), "--json")

    assert again.returncode == Exit.DONE
    assert json.loads(again.stdout)["written"] == []


def test_a_file_that_differs_is_kept_and_nothing_is_written(tmp_path: Path) -> None:
    own = tmp_path / "alerts.yaml"
    own.write_text("mine", encoding="utf-8")
    answer = exporter("dashboards", "export", str(tmp_path))

    assert answer.returncode == Exit.USAGE
    assert "alerts.yaml" in answer.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["alerts.yaml"]
    assert own.read_text(encoding="utf-8") == "mine"


def test_force_overwrites(tmp_path: Path) -> None:
    (tmp_path / "alerts.yaml").write_text("mine", encoding="utf-8")
    answer = exporter("dashboards", "export", "--force", str(tmp_path))

    assert answer.returncode == Exit.DONE
    assert (tmp_path / "alerts.yaml").read_bytes() == (SHIPPED / "alerts.yaml").read_bytes()


def test_a_directory_that_cannot_be_made_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    answer = exporter("dashboards", "export", str(tmp_path / "file" / "below"))

    assert answer.returncode == Exit.USAGE
    assert "cannot be" in answer.stderr
