"""A team's receiver with a certificate that no usual authority has signed: delivered to by who is told to trust it."""

import pytest

from tests.otel.certificates import Certificates, make_certificates, make_self_signed
from tests.program.driver import Machine
from tests.program.team import Team


@pytest.fixture
def certificates(machine: Machine) -> Certificates:
    folder = machine.root / "certificates"
    folder.mkdir()
    return make_certificates(folder)


@pytest.fixture
def encrypted(machine: Machine, certificates: Certificates) -> Machine:
    """A machine that delivers over TLS, and has not been told whom to trust."""
    files = (certificates.server, certificates.server_key)
    machine.team = Team(machine.root / "team", machine.environment, files, trusted=certificates.authority)
    machine.tables["team"] = {"url": machine.team.url, "token_file": str(machine.team.token_file)}
    machine.settings["give_up_seconds"] = 1
    return machine


def test_delivery_works_with_the_certificate_file_and_not_without(
    encrypted: Machine, certificates: Certificates
) -> None:
    session, team = encrypted.session().write(50), encrypted.team
    assert team is not None

    running = encrypted.start()
    running.wait_for_word("not trusted")
    (sink,) = encrypted.json("status")["sinks"]
    [check] = [one for one in encrypted.json("doctor", expected_exit=4)["checks"] if one["name"] == sink["name"]]
    running.stop()

    assert sink["state"] == "waiting"
    assert "its certificate is not trusted" in sink["last_error"]
    assert "set certificate_file to the CA's certificate" in sink["last_error"]
    assert (check["verdict"], check["remedy"]) == ("failed", "set certificate_file to the CA's certificate")
    assert team.count(session.id) == 0

    encrypted.tables["team"]["certificate_file"] = str(certificates.authority)
    encrypted.deliver()

    encrypted.assert_delivered()
    assert "failed" not in {one["verdict"] for one in encrypted.json("doctor")["checks"]}


@pytest.mark.parametrize("scheme", ["https", "HTTPS"])
def test_another_authority_is_not_enough_however_the_address_is_written(
    encrypted: Machine, certificates: Certificates, scheme: str
) -> None:
    session, team = encrypted.session().write(5), encrypted.team
    assert team is not None
    encrypted.tables["team"]["url"] = team.url.replace("https", scheme)
    encrypted.tables["team"]["certificate_file"] = str(certificates.other)

    encrypted.deliver(expected_exit=6)

    assert team.count(session.id) == 0


def test_a_self_signed_certificate_may_be_trusted_itself(machine: Machine) -> None:
    own, key = make_self_signed(machine.root)
    machine.team = Team(machine.root / "team", machine.environment, (own, key), trusted=own)
    machine.tables["team"] = {
        "url": machine.team.url, "token_file": str(machine.team.token_file), "certificate_file": str(own)
    }  # fmt: skip
    machine.session().write(5)

    machine.deliver()

    machine.assert_delivered()
