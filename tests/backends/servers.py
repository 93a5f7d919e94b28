"""The real backends as processes on loopback, with the files of `deploy/`: only hosts, ports and directories differ."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Final

import httpx
import pytest
import yaml

from tests.backends import install
from tests.real.cli import wait_until
from tests.real.station import REPOSITORY

START_SECONDS_MAX: Final = 90
STOP_SECONDS_MAX: Final = 20
ANSWER_SECONDS_MAX: Final = 60
_DEPLOY: Final = REPOSITORY / "deploy"


def free_port() -> int:
    """A port of loopback that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass(slots=True)
class Server:
    """A backend that can be stopped and started again with the same data; a context manager."""

    name: str
    url: str
    endpoint: str
    ready: str
    command: list[str]
    directory: Path
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    def __enter__(self) -> Server:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def start(self) -> None:
        """Start it, and return once it is ready."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self.command, cwd=self.directory, env=environment, stdout=log, stderr=log, start_new_session=True
            )
        wait_until(self._is_ready, f"{self.name} is ready", START_SECONDS_MAX)

    def stop(self) -> None:
        """Ask it to end, and end it after a while."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def restart(self) -> None:
        """Stop it and start it again."""
        self.stop()
        self.start()

    def get(self, path: str, **query: str | int | float) -> Any:
        """The JSON that it answers."""
        answer = httpx.get(self.url + path, params=query, timeout=ANSWER_SECONDS_MAX)
        assert answer.status_code == 200, (answer.status_code, answer.text[:2000])
        return answer.json()

    @property
    def _log(self) -> Path:
        return self.directory / "log"

    def _is_ready(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self._log.read_text(errors="replace")[-3000:]
        try:
            return httpx.get(self.url + self.ready, timeout=5).status_code < 500  # the Collector has no such page
        except httpx.HTTPError:
            return False


def _settings(directory: Path, file: str, replaced: Mapping[str, str], change: Callable[[Any], None]) -> Path:
    """A file of `deploy/` with texts replaced and what loopback needs changed."""
    text = (_DEPLOY / file).read_text(encoding="utf-8")
    for old, new in replaced.items():
        assert re.search(old, text), old
        text = re.sub(old, new, text)
    document = yaml.safe_load(text)
    change(document)
    written = directory / Path(file).name
    written.write_text(yaml.safe_dump(document), encoding="utf-8")
    return written


def prometheus(directory: Path) -> Server:
    """Prometheus with our alert rules."""
    directory.mkdir(parents=True)
    port = free_port()
    alerts = str(_DEPLOY / "grafana/alerts.yaml")
    settings = _settings(directory, "prometheus/prometheus.yaml", {"/etc/prometheus/alerts.yaml": alerts}, _nothing)
    # The other options are those of deploy/compose.yaml.
    given = yaml.safe_load((_DEPLOY / "compose.yaml").read_text(encoding="utf-8"))["services"]["prometheus"]["command"]
    own = ("--config.file", "--storage.tsdb.path")
    command = [
        str(install.program("prometheus")),
        *(option for option in given if not option.startswith(own)),
        f"--config.file={settings}",
        f"--storage.tsdb.path={directory / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    url = f"http://127.0.0.1:{port}"
    return Server("prometheus", url, f"{url}/api/v1/otlp", "/-/ready", command, directory)


def victoriametrics(directory: Path) -> Server:
    """VictoriaMetrics, which has no file of settings; it takes the names that the dashboards ask for."""
    directory.mkdir(parents=True)
    port = free_port()
    command = [
        str(install.program("victoriametrics")),
        f"-httpListenAddr=127.0.0.1:{port}",
        f"-storageDataPath={directory / 'data'}",
        "-retentionPeriod=400d",
        "-opentelemetry.usePrometheusNaming",
        "-search.latencyOffset=0s",
    ]
    url = f"http://127.0.0.1:{port}"
    return Server("victoriametrics", url, f"{url}/opentelemetry", "/health", command, directory)


def loki(directory: Path) -> Server:
    """Loki in one process."""
    directory.mkdir(parents=True)
    port = free_port()

    def on_loopback(document: Any) -> None:
        document["server"] |= {
            "http_listen_address": "127.0.0.1",
            "http_listen_port": port,
            "grpc_listen_address": "127.0.0.1",
            "grpc_listen_port": free_port(),
        }
        document["common"]["instance_addr"] = "127.0.0.1"

    settings = _settings(directory, "loki/loki.yaml", {"/loki\\b": str(directory / "data")}, on_loopback)
    url = f"http://127.0.0.1:{port}"
    command = [str(install.program("loki")), f"-config.file={settings}"]
    return Server("loki", url, f"{url}/otlp", "/ready", command, directory)


def jaeger(directory: Path) -> Server:
    """Jaeger on badger; its module has no page, and takes no file for one."""
    directory.mkdir(parents=True)
    port, grpc, http = free_port(), free_port(), free_port()

    def on_loopback(document: Any) -> None:
        query = document["extensions"]["jaeger_query"]
        del query["ui"]
        query["http"]["endpoint"] = f"127.0.0.1:{port}"
        query["grpc"] = {"endpoint": f"127.0.0.1:{free_port()}"}
        protocols = document["receivers"]["otlp"]["protocols"]
        protocols["grpc"]["endpoint"], protocols["http"]["endpoint"] = f"127.0.0.1:{grpc}", f"127.0.0.1:{http}"
        document["service"]["telemetry"] = {"metrics": {"level": "none"}}

    settings = _settings(directory, "jaeger/config.yaml", {"/badger/": f"{directory}/"}, on_loopback)
    url = f"http://127.0.0.1:{port}"
    command = [str(install.program("jaeger")), f"--config={settings}"]
    return Server("jaeger", url, f"http://127.0.0.1:{http}", "/api/services", command, directory)


def collector(directory: Path, **stores: str) -> Server:
    """The Collector in front of stores, by the address that each takes a signal at; the others are left out."""
    directory.mkdir(parents=True)
    grpc, http = free_port(), free_port()

    def on_loopback(document: Any) -> None:
        protocols = document["receivers"]["otlp"]["protocols"]
        protocols["grpc"]["endpoint"], protocols["http"]["endpoint"] = f"127.0.0.1:{grpc}", f"127.0.0.1:{http}"
        kept = {f"otlp_http/{name}": url for name, url in stores.items()}
        for name in list(document["exporters"]):
            if name in kept:
                document["exporters"][name]["endpoint"] = kept[name]
            else:
                del document["exporters"][name]
        pipelines = document["service"]["pipelines"]
        for name in list(pipelines):
            if pipelines[name]["exporters"][0] not in kept:
                del pipelines[name]
        document["service"]["telemetry"] = {"metrics": {"level": "none"}}

    settings = _settings(directory, "collector/config.yaml", {}, on_loopback)
    url = f"http://127.0.0.1:{http}"
    command = [str(install.program("collector")), f"--config={settings}"]
    return Server("collector", url, url, "", command, directory)


def _nothing(_: Any) -> None:
    """Change nothing."""


MAKERS: Final[Mapping[str, Callable[[Path], Server]]] = {
    "prometheus": prometheus,
    "victoriametrics": victoriametrics,
    "loki": loki,
    "jaeger": jaeger,
}


def needs(name: str) -> pytest.MarkDecorator:
    """Leave a test out, with a message, where a backend is missing."""
    return pytest.mark.skipif(install.present(name) is None, reason=f"{name} is not here: make backends")


def each_of(*names: str) -> list[Any]:
    """Backends by name as parameters of a test; those that are missing are left out, with a message."""
    return [pytest.param(name, marks=needs(name)) for name in names]
