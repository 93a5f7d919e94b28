"""Build or unpack the real backends, pinned, into a cache directory.

`python -m tests.backends.install [--minutes N] [NAME ...]` prints one line per program: where it is, or why it is
missing. A second run only looks at files, so it works offline; what was not built in N minutes is missing for now, and
the next run goes on from what is compiled. Each part is built beside its place and renamed into it, under a lock.
Nothing is installed on the machine, and nothing is started.

Go programs come from the module proxy that Go is set up for. VictoriaMetrics comes from the development suite of
Debian, at the mirror that apt is set up for; that suite keeps no old versions, so the program may be gone.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Final

import httpx

from tests.real.install import InstallError, directory, locked, part
from tests.real.phoenix import interpreter

BUILD_SECONDS_MAX: Final = 900
_MINUTES: Final = "EXPORTER_BACKENDS_MINUTES"
_BEGAN: Final = time.monotonic()
DOWNLOAD_SECONDS_MAX: Final = 300
_COLLECTOR: Final = "0.162.0"
_COLLECTOR_STABLE: Final = "1.68.0"
_DEB: Final = "pool/main/v/victoriametrics/victoria-metrics_1.145.0+ds1-2_amd64.deb"
_DEB_SHA256: Final = "c858b5c15b1c3a3872ec7520cddb2bb51fc48d4b61b6b88f05ac7304edb44557"


@dataclass(frozen=True, slots=True)
class Module:
    """A program in a Go module: the hash is the one of `go.sum`; replacements that need other files are dropped."""

    path: str
    version: str
    sum: str
    package: str
    tags: str = ""
    dropped: tuple[str, ...] = ()


_MODULES: Final = {
    "prometheus": Module(
        "github.com/prometheus/prometheus",
        "v0.315.0",
        "h1:sFGZWmC2Hk9N1NBJGCnXYZb5hyLCq8yuAMoEjLAg6ac=",
        "./cmd/prometheus",
        # Without the discovery of targets in clouds, which is most of what would be compiled.
        tags="remove_all_sd",
    ),
    "jaeger": Module(
        "github.com/jaegertracing/jaeger",
        "v1.76.0",
        "h1:sWCOOF1dr+NL0PLil7mFo3BqqQL8k4WiM7aguFbc14g=",
        "./cmd/jaeger",
    ),
    "loki": Module(
        "github.com/grafana/loki/v3",
        "v3.7.8",
        "h1:bJ0WFWVOjgvG/jYmT9fIX15SYXXDwuEu/IMgTwMA97U=",
        "./cmd/loki",
        dropped=("github.com/grafana/loki/pkg/push",),
    ),
}
_BUILDER: Final = Module(
    "go.opentelemetry.io/collector/cmd/builder",
    f"v{_COLLECTOR}",
    "h1:iseJto2FMcVRDm0ff2vJ3NxH0KHHK3sKQniyruRLLV8=",
    ".",
)
_MANIFEST: Final = {
    "dist": {"name": "collector", "output_path": "made"},
    "receivers": [{"gomod": f"go.opentelemetry.io/collector/receiver/otlpreceiver v{_COLLECTOR}"}],
    "processors": [{"gomod": f"go.opentelemetry.io/collector/processor/memorylimiterprocessor v{_COLLECTOR}"}],
    "exporters": [{"gomod": f"go.opentelemetry.io/collector/exporter/otlphttpexporter v{_COLLECTOR}"}],
    "providers": [{"gomod": f"go.opentelemetry.io/collector/confmap/provider/fileprovider v{_COLLECTOR_STABLE}"}],
    # Else it wants the provider of environment variables too, and does not start.
    "conf_resolver": {"default_uri_scheme": "file"},
}


def _go_program(module: Module, place: Path) -> None:
    source = place / "source"
    _copy_module(module, source)
    for replaced in module.dropped:
        _go(source, "mod", "edit", f"-dropreplace={replaced}")
    program = place / "program"
    _go(
        source,
        "build",
        "-trimpath",
        "-mod=mod",
        f"-tags={module.tags}",
        "-ldflags=-s -w",
        "-o",
        str(program),
        module.package,
    )
    shutil.rmtree(source)


def _copy_module(module: Module, target: Path) -> None:
    answer = json.loads(_go(target.parent, "mod", "download", "-json", f"{module.path}@{module.version}"))
    if answer["Sum"] != module.sum:
        raise InstallError(f"{module.path}@{module.version} has the hash {answer['Sum']}, and {module.sum} is recorded")
    shutil.copytree(answer["Dir"], target)
    for path in (target, *target.rglob("*")):
        path.chmod(path.stat().st_mode | 0o200)  # a module's directory is read-only


def _collector(place: Path) -> None:
    builder = place / "builder"
    _copy_module(_BUILDER, builder)
    _go(builder, "build", "-trimpath", "-mod=mod", "-o", str(place / "ocb"), ".")
    (place / "manifest.json").write_text(json.dumps(_MANIFEST), encoding="utf-8")
    _run(place, str(place / "ocb"), "--config=manifest.json", "--skip-strict-versioning", "--ldflags=-s -w")
    (place / "made" / "collector").rename(place / "program")
    for rest in (builder, place / "made"):
        shutil.rmtree(rest)
    (place / "ocb").unlink()


def _victoria(place: Path) -> None:
    if platform.machine() != "x86_64" or not shutil.which("dpkg-deb"):
        raise InstallError("its package is for Debian on amd64")
    archive = place / "archive.deb"
    with httpx.stream("GET", f"{_mirror()}/{_DEB}", timeout=DOWNLOAD_SECONDS_MAX, follow_redirects=True) as answer:
        if answer.status_code != 200:
            raise InstallError(f"Debian's development suite has no {Path(_DEB).name} any more ({answer.status_code})")
        with archive.open("wb") as written:
            for block in answer.iter_bytes():
                written.write(block)
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    if digest != _DEB_SHA256:
        raise InstallError(f"{Path(_DEB).name} has the hash {digest}, and {_DEB_SHA256} is recorded")
    _run(place, "dpkg-deb", "--extract", str(archive), str(place / "unpacked"))
    (place / "unpacked/usr/bin/victoria-metrics").rename(place / "program")
    shutil.rmtree(place / "unpacked")
    archive.unlink()


def _mirror() -> str:
    """The mirror that apt takes Debian itself from."""
    told = _run(Path.cwd(), "apt-get", "indextargets", "--format", "$(ORIGIN) $(SITE)", "Created-By: Packages")
    sites = [line.split()[-1] for line in told.splitlines() if line.strip() and "security" not in line]
    if not sites:
        raise InstallError("apt knows no mirror of Debian")
    return sites[0]


_RECIPES: Final[Mapping[str, tuple[str, Callable[[Path], None]]]] = MappingProxyType(
    {
        "victoriametrics": ("1.145.0", _victoria),
        "collector": (_COLLECTOR, _collector),
        **{name: (module.version, partial(_go_program, module)) for name, module in _MODULES.items()},
    }
)
NAMES: Final = tuple(_RECIPES)


def present(name: str) -> Path | None:
    """The program, if it was built or unpacked before."""
    program = _place(name) / "program"
    return program if os.access(program, os.X_OK) else None


def program(name: str) -> Path:
    """The program, built or unpacked first if it is missing."""
    found = present(name)
    if found is not None:
        return found
    _place(name).parent.mkdir(parents=True, exist_ok=True)
    with locked(_place(name).parent):
        return part(_place(name), _program, _RECIPES[name][1])


def _program(place: Path) -> Path | None:
    return place / "program" if os.access(place / "program", os.X_OK) else None


def _place(name: str) -> Path:
    return directory() / "backends" / f"{name}-{_RECIPES[name][0]}"


def _go(place: Path, *arguments: str) -> str:
    go = shutil.which("go")
    if not go:
        raise InstallError("Go is not here (Debian, Ubuntu: apt-get install golang)")
    return _run(place, go, *arguments)


class NotInTime(InstallError):
    """A program is not built yet, and the time that was given is over."""


def _seconds_left() -> float:
    minutes = os.environ.get(_MINUTES)
    left = BUILD_SECONDS_MAX if minutes is None else float(minutes) * 60 - (time.monotonic() - _BEGAN)
    return min(left, BUILD_SECONDS_MAX)


def _run(place: Path, *command: str) -> str:
    caches = {"GOCACHE": str(directory() / "backends/go-build"), "GOMODCACHE": str(directory() / "backends/go-mod")}
    fixed = {"GOWORK": "off", "CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": ""}
    with subprocess.Popen(
        command,
        cwd=place,
        env=caches | dict(os.environ) | fixed,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            said, warned = process.communicate(timeout=max(_seconds_left(), 0.1))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # with the compilers that it started
            raise NotInTime("not built in the time that was given; the next run goes on") from None
    if process.returncode:
        raise InstallError(f"{' '.join(command[:3])} failed ({process.returncode}):\n{(said + warned)[-2000:]}")
    return said


def main() -> int:
    """Build what is missing; a program that cannot be built is a failure, one that is nowhere any more is not."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", nargs="*", choices=[*NAMES, "phoenix", []], help="which; all of them if none is named")
    parser.add_argument("--minutes", type=float, help="begin and continue nothing after so many minutes")
    given = parser.parse_args()
    if given.minutes is not None:
        os.environ[_MINUTES] = str(given.minutes)
    failed = False
    for name in given.name or [*NAMES, "phoenix"]:
        began, used = time.monotonic(), _cpu_seconds()
        try:
            where = interpreter() if name == "phoenix" else program(name)
        except InstallError as error:
            failed |= name != "victoriametrics" and not isinstance(error, NotInTime)
            print(f"{name}: missing: {error}", flush=True)
            continue
        taken = f"{time.monotonic() - began:.0f} s, {_cpu_seconds() - used:.0f} s of processor"
        print(f"{name}: {where} ({taken})", flush=True)
    return int(failed)


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    sys.exit(main())
