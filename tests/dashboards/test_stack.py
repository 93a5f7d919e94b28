"""The files of the demonstration stack are well-formed and name each other rightly; none of it is run here."""

import json
import re
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.dashboards.boards import ROOT

DEPLOY: Final = ROOT / "deploy"
RUN: Final = re.compile(r"not run in our ci|`make real` runs it with this file", re.IGNORECASE)
CONFIGURATIONS: Final = sorted(
    path for name in ("collector", "jaeger", "loki", "prometheus", "tempo") for path in (DEPLOY / name).glob("*.yaml")
)
PROFILES: Final = {"lgtm", "full", "jaeger"}


def _compose() -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
    return read


SERVICES: Final = _compose()["services"]

every_service = pytest.mark.parametrize("name", SERVICES)


@pytest.mark.parametrize("path", [DEPLOY / "compose.yaml", *CONFIGURATIONS], ids=lambda path: path.parent.name)
def test_a_file_says_whether_anybody_ran_it_and_is_well_formed(path: Path) -> None:
    text = path.read_text(encoding="utf-8")

    assert RUN.search(text)
    assert isinstance(yaml.safe_load(text), dict)


@every_service
def test_an_image_is_pinned(name: str) -> None:
    assert re.fullmatch(r"docker\.io/[\w./-]+:v?\d+\.\d+\.\d+", SERVICES[name]["image"])


@every_service
def test_a_port_is_open_on_loopback_only(name: str) -> None:
    assert [port for port in SERVICES[name].get("ports", []) if not port.startswith("127.0.0.1:")] == []


@every_service
def test_a_service_belongs_to_a_profile_that_has_what_it_needs(name: str) -> None:
    (profile,) = SERVICES[name]["profiles"]

    assert profile in PROFILES
    assert all(profile in SERVICES[other]["profiles"] for other in SERVICES[name].get("depends_on", []))


@every_service
def test_a_file_that_is_mounted_exists_and_cannot_be_changed(name: str) -> None:
    kept = _compose()["volumes"]
    for volume in SERVICES[name].get("volumes", []):
        source, _, rest = volume.partition(":")

        assert source in kept or ((DEPLOY / source).exists() and rest.endswith(":ro")), volume


@pytest.mark.parametrize("profile", sorted(PROFILES))
def test_a_profile_opens_no_port_twice_and_takes_otlp(profile: str) -> None:
    ports = [
        port for service in SERVICES.values() if profile in service["profiles"] for port in service.get("ports", [])
    ]

    assert len(ports) == len(set(ports))
    assert {"127.0.0.1:4317:4317", "127.0.0.1:4318:4318"} <= set(ports)


def test_without_a_choice_one_container_has_everything() -> None:
    assert (DEPLOY / ".env").read_text(encoding="utf-8") == "COMPOSE_PROFILES=lgtm\n"


def test_the_collector_hands_every_signal_to_a_service_of_the_stack() -> None:
    collector = yaml.safe_load((DEPLOY / "collector/config.yaml").read_text(encoding="utf-8"))
    pipelines = collector["service"]["pipelines"]
    hosts = {re.split("[:/]+", exporter["endpoint"])[1] for exporter in collector["exporters"].values()}

    assert set(pipelines) == {"traces", "metrics", "logs"}
    assert {name for pipeline in pipelines.values() for name in pipeline["exporters"]} == set(collector["exporters"])
    assert hosts == {name for name, service in SERVICES.items() if "full" in service["profiles"]} - {
        "collector", "grafana",
    }  # fmt: skip


def test_grafana_finds_its_data_sources_and_dashboards_where_the_stack_puts_them() -> None:
    directory = DEPLOY / "grafana/provisioning"
    sources = yaml.safe_load((directory / "datasources/session-exporter.yaml").read_text(encoding="utf-8"))
    providers = yaml.safe_load((directory / "dashboards/session-exporter.yaml").read_text(encoding="utf-8"))
    (provider,) = providers["providers"]

    assert {re.split("[:/]+", source["url"])[1] for source in sources["datasources"]} <= set(SERVICES)
    for name in ("lgtm", "grafana"):
        assert f"./grafana/dashboards:{provider['options']['path']}:ro" in SERVICES[name]["volumes"]


def test_jaeger_stores_what_it_shows() -> None:
    jaeger = yaml.safe_load((DEPLOY / "jaeger/config.yaml").read_text(encoding="utf-8"))
    backends = set(jaeger["extensions"]["jaeger_storage"]["backends"])

    assert {jaeger["exporters"]["jaeger_storage_exporter"]["trace_storage"]} == backends
    assert {jaeger["extensions"]["jaeger_query"]["storage"]["traces"]} == backends
    assert json.loads((DEPLOY / "jaeger/ui.json").read_text(encoding="utf-8"))["linkPatterns"]


def test_prometheus_takes_the_alert_rules_and_points_of_any_age() -> None:
    prometheus = yaml.safe_load((DEPLOY / "prometheus/prometheus.yaml").read_text(encoding="utf-8"))
    service = SERVICES["prometheus"]
    mounted = {volume.split(":")[1] for volume in service["volumes"]}

    assert set(prometheus["rule_files"]) <= mounted
    assert prometheus["storage"]["tsdb"]["out_of_order_time_window"]
    assert "--web.enable-otlp-receiver" in service["command"]
