"""A receiver is reached by an IPv6 address, and by a name that has several addresses of which one answers."""

import os
import shutil
import socket
import sys
from typing import Final

import pytest

from tests.program.driver import Machine

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("unshare") is None, reason="names are given in a mount namespace"
)
NAMED: Final = 'mount --bind "$0" /etc/hosts && exec "$@"'


def test_a_name_with_several_addresses_is_reached_at_the_one_that_answers(machine: Machine) -> None:
    floor = machine.with_floor().floor
    assert floor is not None
    hosts = machine.root / "hosts"
    hosts.write_text("127.0.0.9 mc.test\n::1 mc.test\n127.0.0.1 mc.test\n")  # it listens at the last one
    table = machine.tables["floor"]
    table |= {"url": table["url"].replace("127.0.0.1", "mc.test"), "allow_http": True}
    session = machine.session().write(5)
    unshare = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"])]

    answer = machine.exporter("run", "--until-idle", prefix=[*unshare, "sh", "-c", NAMED, str(hosts)])

    assert answer.returncode == 0, answer.stderr
    assert floor.lines(session.id) == session.durable()


@pytest.mark.skipif(not socket.has_ipv6, reason="no IPv6")
def test_an_ipv6_literal_is_an_address_like_any_other(machine: Machine) -> None:
    team = machine.with_team("::1").team
    machine.session().write(5)

    machine.deliver()

    machine.assert_delivered()
    assert team is not None and team.url.startswith("http://[::1]:")
