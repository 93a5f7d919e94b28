"""What the doctor says of sources besides the files."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from exporter.doctor import sources
from exporter.doctor.facts import Facts
from tests.doctor.machines import told


def test_each_source_is_told_with_what_it_sees_and_other_servers_are_suggested(facts: Facts, tmp_path: Path) -> None:
    processes = tmp_path / "proc"
    for number, port in enumerate((4321, 5555)):
        (processes / str(number)).mkdir(parents=True)
        command = ["node", "/usr/bin/copilot", "--headless", "--port", str(port), ""]
        (processes / str(number) / "cmdline").write_bytes("\0".join(command).encode())
    away = {"name": "rpc://127.0.0.1:4321", "state": "the server cannot be reached: refused"}
    named = replace(facts, sources=(told("tap"), told("rpc://127.0.0.1:4321")), status={"sources": [away]})

    tap, rpc, *suggested = sources.sources(named, processes)

    assert (tap.verdict, rpc.verdict) == ("ok", "warning")
    assert "cannot be reached" in rpc.detail and "does not see session.usage_record" in rpc.detail
    if sys.platform == "linux":
        assert ["rpc://127.0.0.1:5555" in one.remedy for one in suggested] == [True]
        assert {one.verdict for one in suggested} == {"note"}
    assert list(sources.sources(facts, tmp_path / "none")) == []


@pytest.mark.skipif(sys.platform != "linux", reason="processes are looked for in /proc")
def test_an_agent_host_is_told_with_what_it_sees_and_others_are_suggested(facts: Facts, tmp_path: Path) -> None:
    process = tmp_path / "proc/12"
    process.mkdir(parents=True)
    (process / "cmdline").write_bytes(b"node\0/x/out/bootstrap-fork.js\0--type=agentHost\0")
    (process / "environ").write_bytes(b"SECRET=s3cret\0VSCODE_AGENT_HOST_PORT=4747\0VSCODE_TOKEN=s3cret\0")
    url = "ahp+ws://127.0.0.1:4321/"
    refused = {"name": url, "state": "following", "problems": [{"kind": "the host denies access", "session": "s"}]}
    away = {"name": url, "state": "the host refused the token (HTTP 403)", "problems": []}

    [well, found] = sources.sources(replace(facts, sources=(told(url),)), tmp_path / "proc")
    [denied, _] = sources.sources(
        replace(facts, sources=(told(url),), status={"sources": [refused]}), tmp_path / "proc"
    )
    [wrong, _] = sources.sources(replace(facts, sources=(told(url),), status={"sources": [away]}), tmp_path / "proc")
    observed = [*sources.sources(replace(facts, sources=(told("ahp+wss://h:4747/"),)), tmp_path / "proc")]

    assert (well.verdict, "tool calls" in well.detail, "hooks" in well.detail) == ("ok", True, True)
    assert (found.verdict, "port 4747" in found.detail, "ahp+ws://127.0.0.1:4747/" in found.remedy) == (
        "note",
        True,
        True,
    )
    assert (denied.verdict, "denies access" in denied.detail) == ("warning", True)
    assert (wrong.verdict, "HTTP 403" in wrong.detail) == ("warning", True)
    assert [one.name for one in observed] == ["source ahp+wss://h:4747/"]
    assert "s3cret" not in repr((well, found))


def test_an_agent_host_without_the_package_that_it_needs_fails(facts: Facts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name, package=None: None)

    [check] = sources.sources(replace(facts, sources=(told("ahp+ws://127.0.0.1:1/"),)), Path("/none"))

    assert (check.verdict, check.remedy) == ("failed", "pip install 'session-exporter[ahp]'")
