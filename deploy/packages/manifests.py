"""Plain manifests, made from the chart: `python -m deploy.packages.manifests HELM`, with the path of helm.

They are what the chart gives with a few values, for people who have no Helm; a test compares them.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

CHARTS: Final = Path(__file__).parents[1] / "helm"
TARGET: Final = Path(__file__).parents[1] / "kubernetes"
NAMESPACE: Final = "session-exporter"
_RECEIVER: Final = ("receiver.enabled=true", "receiver.tokenSecret.name=mission-control")
KINDS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "daemonset.yaml": ("session-exporter", ("daemonset.enabled=true",)),
    "receiver.yaml": ("session-exporter", _RECEIVER),
    "receiver-postgresql.yaml": ("session-exporter", (*_RECEIVER, "receiver.postgresql.urlSecret.name=postgresql")),
    "sidecar.yaml": ("agent", ()),
}
"""Each file, with the chart and the values that it is made of."""


def render(helm: Path, chart: str, values: Sequence[str], *more: str) -> str:
    """Return what Helm makes of a chart; raises `OSError` with its words."""
    with tempfile.TemporaryDirectory() as directory:
        copy = Path(directory, chart)
        shutil.copytree(CHARTS / chart, copy)
        if chart != "session-exporter":
            shutil.copytree(CHARTS / "session-exporter", copy / "charts/session-exporter")
        given = [word for one in values for word in ("--set", one)]
        command = [str(helm), "template", "session-exporter", str(copy), "--namespace", NAMESPACE, *given, *more]
        environment = {**os.environ, "HOME": directory, "HELM_CACHE_HOME": directory, "HELM_CONFIG_HOME": directory}
        answer = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if answer.returncode:
        raise OSError(answer.stderr.strip())
    return answer.stdout


def manifests(helm: Path) -> dict[str, str]:
    """Return every plain manifest by its name."""
    title = "# Made by `python -m deploy.packages.manifests` from deploy/helm; do not edit.\n"
    return {name: title + render(helm, chart, values) for name, (chart, values) in KINDS.items()}


if __name__ == "__main__":
    TARGET.mkdir(exist_ok=True)
    for name, text in manifests(Path(sys.argv[1])).items():
        (TARGET / name).write_text(text)
