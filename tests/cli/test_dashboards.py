"""`exporter dashboards` writes what the package holds, and never over somebody's own file unasked."""

import json
from pathlib import Path

import pytest
import yaml

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


def test_up_writes_all_that_the_containers_mount_and_says_how_to_start_them(tmp_path: Path) -> None:
    answer = exporter("dashboards", "up", str(tmp_path / "stack"))

    compose = yaml.safe_load((tmp_path / "stack/compose.yaml").read_text(encoding="utf-8"))
    mounted = [
        volume.split(":")[0] for service in compose["services"].values() for volume in service.get("volumes", [])
    ]
    assert answer.returncode == Exit.DONE, answer.stderr
    assert answer.stdout.splitlines()[-1] == f"docker compose --project-directory {tmp_path / 'stack'} up"
    assert "not run by us" in answer.stdout
    assert [name for name in mounted if name.startswith("./") and not (tmp_path / "stack" / name).exists()] == []


def test_up_has_a_directory_of_its_own_and_keeps_what_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    first = exporter("dashboards", "up", "--json")
    (tmp_path / "session-exporter-dashboards/compose.yaml").write_text("mine", encoding="utf-8")
    again = exporter("dashboards", "up")

    assert json.loads(first.stdout)["directory"] == "session-exporter-dashboards"
    assert again.returncode == Exit.USAGE
    assert (tmp_path / "session-exporter-dashboards/compose.yaml").read_text(encoding="utf-8") == "mine"


def test_links_lead_to_the_mission_control_that_is_named(tmp_path: Path) -> None:
    exporter("dashboards", "up", "--mission-control", "https://mc.example.com/mc/", str(tmp_path))
    board = json.loads((tmp_path / "grafana/dashboards/fleet.json").read_text(encoding="utf-8"))

    (variable,) = [each for each in board["templating"]["list"] if each["name"] == "mission_control"]
    assert variable["current"]["value"] == "https://mc.example.com/mc"
    assert "127.0.0.1:8411" not in json.dumps(board)


@pytest.mark.parametrize("address", ["mc.example.com", "ftp://mc.example.com", "http://[", "http://"])
def test_an_address_that_is_none_is_refused(address: str, tmp_path: Path) -> None:
    answer = exporter("dashboards", "up", "--mission-control", address, str(tmp_path / "stack"))

    assert answer.returncode == Exit.USAGE
    assert not (tmp_path / "stack").exists()
