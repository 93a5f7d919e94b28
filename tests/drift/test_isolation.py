"""The fences that `tests/conftest.py` puts around every test."""

import os
import socket
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st


def test_a_connection_that_leaves_the_machine_is_refused() -> None:
    with socket.socket() as client, pytest.raises(OSError, match="may not connect"):
        client.connect(("192.0.2.1", 9))


def test_a_name_is_not_looked_up() -> None:
    with pytest.raises(OSError, match="may not look up"):
        socket.getaddrinfo("sessions.example", 443)


def test_loopback_works() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        assert client.getpeername() == server.getsockname()


def test_home_is_empty_and_settings_of_this_machine_are_gone(own_home: Path) -> None:
    names = {name for name in os.environ if name.startswith(("EXPORTER_", "COPILOT_", "OTEL_"))}

    assert names <= {"EXPORTER_REAL_DIR"}
    assert Path.home() == own_home
    assert [entry.name for entry in own_home.iterdir()] == ["run"]


@given(st.binary())
def test_properties_run_inside_the_fences(data: bytes) -> None:
    assert bytes(data) == data
