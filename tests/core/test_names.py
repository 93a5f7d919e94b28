"""Names of sinks, and what is known and said of the addresses behind them."""

import pytest

from exporter.core.names import (
    INSTALLATION_HEADER,
    LOCAL,
    STORE_HEADER,
    last_error_name,
    leaving,
    names_of,
    otlp_name,
    sink_name,
)


def test_a_sink_is_named_by_its_table_and_its_name_there() -> None:
    assert [sink_name("archive", name) for name in ("default", "cold")] == ["archive", "archive.cold"]
    assert [otlp_name("default"), otlp_name("lab", "logs")] == ["otel", "otel.lab:logs"]
    assert last_error_name(3) != last_error_name(4)


def test_what_others_read_is_written_as_the_documents_say() -> None:
    assert LOCAL == "local"
    assert (STORE_HEADER, INSTALLATION_HEADER) == ("session-exporter-store", "session-exporter-installation")


@pytest.mark.parametrize(
    ("sink", "names"),
    [
        ("archive", {"archive"}),
        ("otel:logs", {"otel:logs", "otel"}),
        ("otel.lab:logs", {"otel.lab:logs", "otel.lab", "otel"}),
        ("other.lab:logs", {"other.lab:logs", "other.lab"}),
    ],
)
def test_a_sink_is_asked_for_by_its_own_name_its_endpoints_and_that_of_all_endpoints(
    sink: str, names: set[str]
) -> None:
    assert names_of(sink) == names


def test_what_leaves_the_machine_is_said_with_its_host_and_without_secrets() -> None:
    addresses = {
        "local": "http://127.0.0.1:1",
        "archive": "file:///data",
        "mission_control": "https://name:password@host.example:8443/path",
        "otel": "http://other.example/v1?key=secret",
    }

    assert leaving(addresses) == ["mission_control (host.example:8443)", "otel (other.example)"]
