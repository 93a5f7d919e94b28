"""The chart renders for every mix of values, Kubernetes would take each result, and the plain manifests are its own."""

import json
import subprocess
from itertools import product
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from deploy.packages.manifests import CHARTS, TARGET, manifests, render
from exporter.version import VERSION
from tests.packages.tools import programs

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]

KUBERNETES: Final = ("1.29", "1.37")
"""The oldest version that has native sidecars for everybody, and the newest that the validator knows."""
RECEIVER: Final = ("receiver.enabled=true", "receiver.tokenSecret.name=t")
_OWN: Final = (
    "receiver.volume.existingClaim=mine", "receiver.tlsSecret=tls", "receiver.publicUrl=https://mc.example.com/mc",
)  # fmt: skip
_TOKEN: Final = ("metrics.podMonitor.enabled=true", "metrics.allowOpen=false", "metrics.tokenSecret.name=m")
_LITTLE: Final = ("networkPolicy.enabled=false", "podDisruptionBudget.enabled=false", "serviceAccount.create=false")
_MORE: Final = (
    "networkPolicy.egress[0].ports[0].port=443", "exporter.secrets[0].name=s", "image.tag=",
    "image.repository=r/x@sha256:00",
)  # fmt: skip
_NODES: Final = ("daemonset.enabled=true", "daemonset.hostPID=true", "exporter.lingerSeconds=12")
MATRIX: Final = (
    ((), ("daemonset.enabled=true",), _NODES),
    ((), RECEIVER, (*RECEIVER, "receiver.postgresql.urlSecret.name=pg"), (*RECEIVER, *_OWN)),
    ((), ("metrics.enabled=false",), _TOKEN),
    ((), _LITTLE, _MORE),
)
CASES: Final = tuple(tuple(word for part in mix for word in part) for mix in product(*MATRIX))


@pytest.fixture(scope="module")
def tools() -> Path:
    return programs()


@pytest.fixture(scope="module")
def rendered(tools: Path) -> dict[tuple[str, ...], list[dict[str, Any]]]:
    """What Helm makes of every case."""
    return {values: _documents(render(tools / "helm", "session-exporter", values)) for values in CASES}


def _documents(text: str) -> list[dict[str, Any]]:
    return [one for one in yaml.safe_load_all(text) if one]


def _judged(tools: Path, directory: Path, documents: list[dict[str, Any]], version: str) -> str:
    """Let kubernetes-validate judge what has a schema of Kubernetes; return what it complains about."""
    path = directory / f"{version}.yaml"
    path.write_text(yaml.safe_dump_all([one for one in documents if one["kind"] != "PodMonitor"]))
    answer = subprocess.run(
        [tools / "kubernetes-validate", "--strict", "-k", version, path], capture_output=True, text=True, check=False
    )
    said = [line for line in (answer.stdout + answer.stderr).splitlines() if not line.startswith("INFO ")]
    assert answer.returncode == 0 or said
    return "\n".join(said)


def test_helm_finds_nothing_wrong_with_the_chart(tools: Path) -> None:
    for values in ("", "daemonset.enabled=true,receiver.enabled=true,receiver.tokenSecret.name=t"):
        command = [
            tools / "helm",
            "lint",
            "--strict",
            CHARTS / "session-exporter",
            *(("--set", values) if values else ()),
        ]
        said = subprocess.run(command, capture_output=True, text=True, check=False)
        assert said.returncode == 0, said.stdout + said.stderr


@pytest.mark.parametrize("version", KUBERNETES)
def test_kubernetes_takes_every_result(
    tools: Path, rendered: dict[tuple[str, ...], list[dict[str, Any]]], tmp_path: Path, version: str
) -> None:
    distinct = {json.dumps(one, sort_keys=True) for documents in rendered.values() for one in documents}

    assert len(rendered) == 108
    assert _judged(tools, tmp_path, [json.loads(one) for one in sorted(distinct)], version) == ""
    print(f"{len(rendered)} cases, {len(distinct)} different objects")


def test_the_validator_notices_what_is_wrong(tools: Path, tmp_path: Path) -> None:
    wrong = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "x"}, "spec": {"prots": []}}

    assert "prots" in _judged(tools, tmp_path, [wrong], KUBERNETES[-1])


def test_pod_monitors_have_what_their_documentation_says(
    tools: Path, rendered: dict[tuple[str, ...], list[dict[str, Any]]], tmp_path: Path
) -> None:
    found = [one for documents in rendered.values() for one in documents if one["kind"] == "PodMonitor"]
    script = "import json,sys,jsonschema; s,d=json.load(sys.stdin); [jsonschema.validate(x,s) for x in d]"
    schema = json.loads(Path(__file__).with_name("podmonitor.schema.json").read_text())

    def judged(documents: list[dict[str, Any]]) -> int:
        given = json.dumps([schema, documents])
        return subprocess.run(
            [tools / "python", "-c", script], input=given, text=True, check=False, capture_output=True
        ).returncode

    assert len(found) == 36
    assert judged(found) == 0
    assert judged([{**found[0], "spec": {**found[0]["spec"], "endpoints": []}}]) != 0


def _pods(documents: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [one["spec"]["template"]["spec"] for one in documents if one["kind"] in ("DaemonSet", "Deployment", "Job")]


def test_every_pod_is_closed_and_has_time_to_end(
    tools: Path, rendered: dict[tuple[str, ...], list[dict[str, Any]]]
) -> None:
    sidecar = _documents(render(tools / "helm", "agent", ()))
    pods = [pod for documents in (*rendered.values(), sidecar) for pod in _pods(documents)]

    for pod in pods:
        ours = [one for one in (*pod["containers"], *pod.get("initContainers", ())) if one["name"] != "agent"]
        for one in ours:
            security = {**pod["securityContext"], **one["securityContext"]}
            assert security["readOnlyRootFilesystem"] is True
            assert security["allowPrivilegeEscalation"] is False
            assert one["securityContext"]["capabilities"]["drop"] == ["ALL"]
            assert security.get("runAsNonRoot") or one["securityContext"]["capabilities"]["add"] == ["DAC_READ_SEARCH"]
            assert one["resources"]["limits"]["memory"]
            environment = {entry["name"]: entry.get("value", "") for entry in one["env"]}
            waits = float(environment.get("EXPORTER_LINGER_SECONDS", 0)) + float(environment["EXPORTER_DRAIN_SECONDS"])
            assert pod["terminationGracePeriodSeconds"] >= waits + 10
        assert pod["automountServiceAccountToken"] is False
    assert len(pods) == 72 + 81 + 1


def test_the_variables_of_the_chart_are_settings_that_the_program_takes(tools: Path, tmp_path: Path) -> None:
    from config.load import load

    documents = _documents(render(tools / "helm", "agent", ()))
    [pod] = _pods(documents)
    [sidecar] = pod["initContainers"]
    environment = {one["name"]: one["value"] for one in sidecar["env"]}
    (tmp_path / "exporter.toml").write_text("")

    loaded = load(file=tmp_path / "exporter.toml", environ=environment, flags={}, fallbacks=False)

    assert loaded.notes == []
    assert sidecar["restartPolicy"] == "Always"
    assert (loaded.settings.linger_seconds, loaded.settings.metrics.listen) == (30, "0.0.0.0:9464")
    mounts = {one["mountPath"]: one.get("readOnly", False) for one in sidecar["volumeMounts"]}
    assert (mounts["/home/agent"], mounts["/var/lib/exporter"]) == (True, False)


def test_a_receiver_needs_a_token_and_metrics_a_decision(tools: Path) -> None:
    for values, said in (
        (("receiver.enabled=true",), "needs a token"),
        (("daemonset.enabled=true", "metrics.allowOpen=false"), "name a tokenSecret"),
        (("recevier.enabled=true",), "recevier"),
        (("exporter.logFormat=yaml",), "logFormat"),
    ):
        with pytest.raises(OSError, match=said):
            render(tools / "helm", "session-exporter", values)


def test_the_plain_manifests_are_those_of_the_chart(tools: Path) -> None:
    there = {path.name: path.read_text() for path in TARGET.glob("*.yaml")}

    assert there == manifests(tools / "helm"), "make them again: python -m deploy.packages.manifests HELM"


def test_the_chart_has_the_version_of_the_program() -> None:
    chart = yaml.safe_load((CHARTS / "session-exporter/Chart.yaml").read_text())
    values = yaml.safe_load((CHARTS / "session-exporter/values.yaml").read_text())

    assert chart["appVersion"] == values["image"]["tag"] == VERSION


def test_hadolint_finds_nothing_to_say(tools: Path) -> None:
    said = subprocess.run(
        [tools / "hadolint", CHARTS.parent / "docker/Dockerfile"], capture_output=True, text=True, check=False
    )

    assert (said.returncode, said.stdout) == (0, "")
