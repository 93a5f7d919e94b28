"""Variables of the CLI and of OpenTelemetry: used as a family, only where allowed, only without settings of ours."""

from collections.abc import Mapping

import pytest

from config.errors import ConfigError
from config.settings import MissionControl, Otel
from tests.config.loading import Loading

MC = {
    "COPILOT_MC_BASE_URL": "https://mc.example.com/agents/",
    "COPILOT_MC_ACCESS_TOKEN": "mc-token",
    "COPILOT_MC_REPO_IDS": "12, 34",
}
OTEL = {
    "OTEL_EXPORTER_OTLP_ENDPOINT": "https://otel.example.com",
    "OTEL_EXPORTER_OTLP_HEADERS": "authorization=Basic%20abc%3D,x=y",
    "OTEL_SERVICE_NAME": "mine",
}
ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"


def test_where_sessions_are_is_obeyed_in_any_case(loading: Loading) -> None:
    loaded = loading(environ={"COPILOT_HOME": "/c"}, fallbacks=False)

    assert loaded.settings.copilot_home == "/c"
    assert loaded.origins["copilot_home"] == "fallback COPILOT_HOME"
    assert loaded.found_not_used == []
    assert loading('copilot_home = "/own"', {"COPILOT_HOME": "/c"}).settings.copilot_home == "/own"


def test_where_they_may_not_act_they_are_only_listed(loading: Loading) -> None:
    loaded = loading(environ=MC | OTEL, fallbacks=False)

    assert (loaded.settings.mission_control, loaded.settings.otel) == ({}, {})
    assert set(loaded.found_not_used) == {*MC, *OTEL}
    assert "mc-token" not in str(loaded)


def test_the_cli_s_mission_control_becomes_the_one_sink(loading: Loading) -> None:
    loaded = loading(environ=MC, fallbacks=True)

    expected = MissionControl(url="https://mc.example.com/agents", token="mc-token", owner_id="12", repo_id="34")
    assert loaded.settings.mission_control == {"default": expected}
    assert loaded.origins["mission_control.default.token"] == "fallback COPILOT_MC_ACCESS_TOKEN"
    assert loaded.found_not_used == []


@pytest.mark.parametrize(
    "environ",
    [
        {"EXPORTER_MISSION_CONTROL__URL": "https://own.example.com"},
        {"EXPORTER_MISSION_CONTROL__TEAM__URL": "https://own.example.com"},
    ],
)
def test_the_cli_s_token_never_goes_to_an_address_of_ours(loading: Loading, environ: Mapping[str, str]) -> None:
    loaded = loading(environ={**MC, **environ}, fallbacks=True)

    (sink,) = loaded.settings.mission_control.values()
    assert sink == MissionControl(url="https://own.example.com")
    assert loaded.found_not_used == list(MC)


def test_a_token_of_ours_never_goes_to_the_cli_s_address(loading: Loading) -> None:
    with pytest.raises(ConfigError, match="has no url"):
        loading(environ={**MC, "EXPORTER_MISSION_CONTROL__TOKEN": "own"}, fallbacks=True)


def test_a_token_without_its_address_is_not_used(loading: Loading) -> None:
    loaded = loading(environ={"COPILOT_MC_ACCESS_TOKEN": "t"}, fallbacks=True)

    assert loaded.settings.mission_control == {}
    assert loaded.found_not_used == ["COPILOT_MC_ACCESS_TOKEN"]


@pytest.mark.parametrize("ids", ["1", "1,", ",2", "1,2,3", ","])
def test_ids_that_are_not_two_are_refused(loading: Loading, ids: str) -> None:
    with pytest.raises(ConfigError, match="OWNER_ID,REPO_ID"):
        loading(environ={**MC, "COPILOT_MC_REPO_IDS": ids}, fallbacks=True)


def test_a_kind_that_is_set_does_not_keep_the_other_kind_from_acting(loading: Loading) -> None:
    loaded = loading('[otel]\nendpoint = "https://own"\n', MC | OTEL, fallbacks=True)

    assert loaded.settings.otel == {"default": Otel(endpoint="https://own")}
    assert loaded.settings.mission_control["default"].token == "mc-token"
    assert set(loaded.found_not_used) == set(OTEL)


OTEL_CASES: list[tuple[dict[str, str], dict[str, Otel]]] = [
    ({}, {}),
    ({"OTEL_SERVICE_NAME": "mine", "OTEL_EXPORTER_OTLP_HEADERS": "a=b"}, {}),
    ({"OTEL_EXPORTER_OTLP_TRACES_HEADERS": "a=b"}, {}),
    (
        OTEL,
        {
            "default": Otel(
                endpoint="https://otel.example.com",
                headers={"authorization": "Basic abc=", "x": "y"},
                service_name="mine",
            )
        },
    ),
    (
        {ENDPOINT: "http://localhost:4318/", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"},
        {"default": Otel(endpoint="http://localhost:4318", protocol="http/protobuf")},
    ),
    (
        {ENDPOINT: "localhost:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc", "OTEL_EXPORTER_OTLP_INSECURE": "true"},
        {"default": Otel(endpoint="http://localhost:4317", protocol="grpc")},
    ),
    (
        {ENDPOINT: "collector:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
        {"default": Otel(endpoint="https://collector:4317", protocol="grpc")},
    ),
    (
        {
            ENDPOINT: "https://x",
            "OTEL_EXPORTER_OTLP_TIMEOUT": "2500",
            "OTEL_EXPORTER_OTLP_COMPRESSION": "none",
            "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE": "DELTA",
            "OTEL_RESOURCE_ATTRIBUTES": "team=a%20b, env = dev",
            "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "true",
        },
        {
            "default": Otel(
                endpoint="https://x",
                timeout_seconds=2.5,
                compression="none",
                temporality="delta",
                resource_attributes={"team": "a b", "env": "dev"},
                content="redacted",
            )
        },
    ),
    (
        {ENDPOINT: "https://x", "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "false"},
        {"default": Otel(endpoint="https://x")},
    ),
    (
        {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "https://t/otel/v1/traces"},
        {"traces": Otel(endpoint="https://t/otel", signals=("traces",))},
    ),
    (
        {"OTEL_EXPORTER_OTLP_LOGS_ENDPOINT": "https://l/ingest", ENDPOINT: "https://x"},
        {
            "default": Otel(endpoint="https://x", signals=("traces", "metrics")),
            "logs": Otel(endpoint="https://l/ingest", signals=("logs",), append_path=False),
        },
    ),
    (
        {
            ENDPOINT: "https://x",
            "OTEL_EXPORTER_OTLP_HEADERS": "a=common",
            "OTEL_EXPORTER_OTLP_METRICS_HEADERS": "a=own",
        },
        {
            "default": Otel(endpoint="https://x", signals=("traces", "logs"), headers={"a": "common"}),
            "metrics": Otel(endpoint="https://x", signals=("metrics",), headers={"a": "own"}),
        },
    ),
]


@pytest.mark.parametrize(("environ", "expected"), OTEL_CASES)
def test_the_standard_variables_make_these_sinks(
    loading: Loading, environ: dict[str, str], expected: dict[str, Otel]
) -> None:
    loaded = loading(environ=environ, fallbacks=True)

    assert loaded.settings.otel == expected
    assert expected or loaded.found_not_used == sorted(environ)


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "carrier-pigeon", 'one of "http/protobuf", "grpc"'),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "soon", "a number"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318", "http:// or https://"),
        ("OTEL_RESOURCE_ATTRIBUTES", "team", "a table of texts"),
    ],
)
def test_a_standard_variable_that_means_nothing_is_refused(
    loading: Loading, variable: str, value: str, said: str
) -> None:
    with pytest.raises(ConfigError) as raised:
        loading(environ={**OTEL, variable: value}, fallbacks=True)

    assert raised.value.where == variable
    assert said in raised.value.message


def test_variables_that_had_no_effect_are_listed_beside_those_that_had(loading: Loading) -> None:
    unknown = "OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION"

    loaded = loading(environ={**OTEL, unknown: "explicit_bucket_histogram"}, fallbacks=True)

    assert loaded.found_not_used == [unknown]


def test_empty_variables_are_not_set(loading: Loading) -> None:
    loaded = loading(environ=dict.fromkeys([*MC, *OTEL, "COPILOT_HOME"], ""), fallbacks=True)

    assert (loaded.settings.mission_control, loaded.settings.otel, loaded.found_not_used) == ({}, {}, [])
    assert loaded.origins["copilot_home"] == "default"
