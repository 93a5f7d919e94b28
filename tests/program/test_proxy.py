"""Delivery through a company's proxy, to a receiver that a company's own authority vouches for."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.connect_proxy import ConnectProxy
from tests.otel.certificates import make_certificates
from tests.program.driver import Machine
from tests.program.team import Team

SYSTEM_ROOTS = "/etc/ssl/certs/ca-certificates.crt"


def _reached_by_name(machine: Machine) -> tuple[Path, str]:
    """Deliver to mc.test, a name that only a proxy knows; returns the authority's certificate, and name and port."""
    folder = machine.root / "certificates"
    folder.mkdir()
    made = make_certificates(folder)
    machine.team = Team(
        machine.root / "team", machine.environment, (made.server, made.server_key), trusted=made.authority
    )
    place = f"mc.test:{machine.team.port}"
    machine.tables["team"] = {"url": f"https://{place}/agents", "token_file": str(machine.team.token_file)}
    machine.settings["give_up_seconds"] = 1
    return made.authority, place


def test_a_session_arrives_through_the_proxy_of_the_environment(machine: Machine) -> None:
    authority, place = _reached_by_name(machine)
    session, team = machine.session().write(50), machine.team
    assert team is not None
    machine.environment["SSL_CERT_FILE"] = str(authority)

    machine.deliver(expected_exit=6)
    with ConnectProxy({place: team.port}) as proxy:
        machine.environment["https_proxy"] = proxy.url
        machine.deliver()
        [check] = [one for one in machine.json("doctor")["checks"] if one["name"] == "mission_control.team"]

    machine.environment.pop("https_proxy")
    assert team.count(session.id) == 50
    assert proxy.heard
    assert team.token_file.read_text().strip() not in "".join(proxy.heard)
    assert check["verdict"] == "ok"
    assert f"through the proxy {proxy.url} (https_proxy), trusting {authority}" in check["detail"]


def test_a_proxy_that_refuses_is_named_and_nothing_is_lost(machine: Machine) -> None:
    authority, place = _reached_by_name(machine)
    session, team = machine.session().write(5), machine.team
    assert team is not None
    machine.tables["team"]["certificate_file"] = str(authority)
    with ConnectProxy({place: team.port}, user="me:word-of-the-proxy") as proxy:
        machine.tables["team"]["proxy"] = proxy.url
        machine.deliver(expected_exit=6)
        [check] = [
            one for one in machine.json("doctor", expected_exit=4)["checks"] if one["name"] == "mission_control.team"
        ]
        machine.tables["team"]["proxy"] = proxy.url.replace("//", "//me:word-of-the-proxy@")
        machine.deliver()
        shown = machine.exporter("config", "show").stdout

    assert check["verdict"] == "failed"
    assert f"the proxy {proxy.url} refuses: 407" in check["detail"]
    assert 'proxy = "none"' in check["remedy"]
    assert team.count(session.id) == 5
    assert "word-of-the-proxy" not in shown


@pytest.mark.skipif(
    shutil.which("unshare") is None, reason="the system's certificates are changed in a mount namespace"
)
def test_a_root_that_the_company_installed_on_the_machine_is_trusted(machine: Machine) -> None:
    authority, _ = _reached_by_name(machine)
    session, team = machine.session().write(5), machine.team
    assert team is not None
    machine.tables["team"]["url"] = team.url
    roots = machine.root / "roots.pem"
    roots.write_bytes(Path(SYSTEM_ROOTS).read_bytes() + authority.read_bytes())
    unshare = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--mount", "--map-root-user"]
    installed = [*unshare, "sh", "-c", 'mount --bind "$0" "$1" && shift && exec "$@"', str(roots), SYSTEM_ROOTS]

    before = machine.exporter("run", "--until-idle")
    after = machine.exporter("run", "--until-idle", prefix=installed)

    assert before.returncode == 6
    assert "not trusted" in before.stderr
    assert after.returncode == 0, after.stderr
    assert team.count(session.id) == 5


@pytest.mark.real
@pytest.mark.skipif(shutil.which("tinyproxy") is None, reason="needs Debian's tinyproxy")
def test_a_real_proxy_carries_a_session(machine: Machine) -> None:
    authority, place = _reached_by_name(machine)
    session, team = machine.session().write(50), machine.team
    assert team is not None
    machine.tables["team"] |= {"certificate_file": str(authority)}
    names, settings = machine.root / "hosts", machine.root / "tinyproxy.conf"
    names.write_text("127.0.0.1 localhost mc.test\n")
    with ConnectProxy({}) as free:
        port = free.port
    settings.write_text(f"Port {port}\nListen 127.0.0.1\nBasicAuth me word\nConnectPort {team.port}\n")
    line = 'mount --bind "$0" /etc/hosts && exec tinyproxy -d -c "$1"'
    process = subprocess.Popen(["unshare", "--mount", "sh", "-c", line, str(names), str(settings)])
    try:
        machine.tables["team"]["proxy"] = f"http://me:word@127.0.0.1:{port}"
        machine.settings["give_up_seconds"] = 20
        machine.deliver()
    finally:
        process.terminate()
        process.wait(20)

    assert place.startswith("mc.test:")
    assert team.count(session.id) == 50
