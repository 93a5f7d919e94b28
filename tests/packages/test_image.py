"""The image: built here of locked packages, small, and run by runc as a service that is killed again and again.

It takes minutes, so `make soak PART=image` runs it, and not `make real`.
"""

import json
import os
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from deploy.docker.image import build, read_lock
from exporter.version import VERSION
from tests.packages.container import Image
from tests.program.driver import Machine, Running, new_machine
from tests.program.restarts import command_of, killed_and_started_again, notify_socket
from tests.program.session_files import event_id
from tests.program.test_metrics import free_port
from tests.program.waiting import until

pytestmark = [
    pytest.mark.real,
    pytest.mark.timeout(1700),
    pytest.mark.skipif("IMAGE_DIRECTORY" not in os.environ, reason="only `make soak PART=image` builds the image"),
]

ACCOUNT: Final = 10001
BYTES_MAX: Final = 150_000_000


@pytest.fixture(scope="module")
def directory() -> Path:
    """Where the image is built, or was by an earlier run."""
    missing = [name for name in ("buildah", "umoci", "runc") if shutil.which(name) is None]
    assert not missing, f"on Debian: apt-get install {' '.join(missing)}"
    path = Path(os.environ["IMAGE_DIRECTORY"]).absolute()
    path.mkdir(parents=True, exist_ok=True)
    return path


@pytest.fixture(scope="module")
def image(directory: Path, tmp_path_factory: pytest.TempPathFactory) -> Image:
    """The image, unpacked; it is built unless it is there."""
    if not (directory / "oci/index.json").is_file():
        build(directory)
    return Image(directory / "oci", tmp_path_factory.mktemp("image"))


@pytest.fixture
def machine() -> Iterator[Machine]:
    """A machine whose sessions the account of the image can read."""
    with new_machine() as machine:
        machine.root.chmod(0o755)
        yield machine.with_floor()


def test_the_image_is_small_and_says_what_it_is_made_of(image: Image, directory: Path) -> None:
    [entry] = json.loads((directory / "oci/index.json").read_text())["manifests"]
    blob = directory / "oci/blobs/sha256"
    manifest = json.loads((blob / entry["digest"].partition(":")[2]).read_text())
    config = json.loads((blob / manifest["config"]["digest"].partition(":")[2]).read_text())
    size = sum(one["size"] for one in manifest["layers"])
    labels = config["config"]["Labels"]
    listed = json.loads((image.bundle / "rootfs" / labels["session-exporter.sbom"].lstrip("/")).read_text())

    print(f"{entry['digest']}, {size / 1e6:.1f} MB in {len(manifest['layers'])} layers")
    assert size <= BYTES_MAX
    assert config["config"]["User"] == f"{ACCOUNT}:{ACCOUNT}"
    assert labels["org.opencontainers.image.version"] == VERSION
    assert labels["org.opencontainers.image.base.digest"].startswith("sha256:")
    assert len(labels["org.opencontainers.image.revision"]) == 40
    assert {"hyperscan", "websockets"} <= {one["name"] for one in listed["components"]}
    assert len(read_lock()) > 15


def test_nothing_in_the_image_is_writable_or_has_more_rights_than_its_account(image: Image) -> None:
    found = subprocess.run(
        ["find", image.bundle / "rootfs", "-xdev", "-perm", "/6000", "-o", "-type", "f", "-perm", "/022"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    answer = image.run("version", "--version")

    assert found.stdout == ""
    assert (answer.returncode, answer.stdout.strip()) == (0, f"exporter {VERSION}")
    assert not (image.bundle / "rootfs/bin/sh").exists()


def container(image: Image, machine: Machine) -> Callable[..., Running]:
    """Return what starts the exporter in a container: sessions read-only, state on a volume of its own."""
    data, settings = machine.root / "data", machine.root / "settings"
    for path in (data, settings):
        path.mkdir()
    os.chown(data, ACCOUNT, ACCOUNT)
    machine.settings |= {"state_dir": "/var/lib/exporter/state"}
    numbers = iter(range(1000))

    def start(*arguments: str) -> Running:
        name = f"{machine.root.name}-{next(numbers)}"
        text = machine.write_settings().read_text().replace(f"state_dir = {json.dumps(str(machine.state))}\n", "")
        (settings / "exporter.toml").write_text(text)
        mounts = {
            data: ("/var/lib/exporter", "rw"),
            machine.home: (str(machine.home), "ro"),
            settings: ("/etc/exporter/settings", "ro"),
            machine.root / "notify": ("/run/notify", "rw"),
        }
        environment = {"NOTIFY_SOCKET": "/run/notify/socket"}
        given = [*(arguments or ("run",)), "--config", "/etc/exporter/settings/exporter.toml"]
        running = command_of(machine, {"PATH": os.environ["PATH"]}, image.command(name, given, environment, mounts))
        # runc hands signals on, but kill -9 ends runc alone: the first process of the container is what is meant.
        running.kill = lambda: end(image, name, running)  # type: ignore[method-assign]
        return running

    return start


def end(image: Image, name: str, running: Running) -> None:
    """kill -9 what runs in the container, and wait until the container is gone."""
    image.kill(name, "KILL")
    running.process.wait(60)


def open_to_the_account(machine: Machine) -> None:
    """Let the account of the image read the sessions, as the same uid does in a pod."""
    for path in (machine.home, *machine.home.rglob("*")):
        os.chown(path, ACCOUNT, ACCOUNT)


def everything_arrived(machine: Machine) -> None:
    """Wait until the receiver holds each durable event of the files, byte for byte."""
    assert machine.floor is not None
    for session in machine.sessions:
        lines = session.durable()
        machine.floor.wait_for(session.id, [event_id(line) for line in lines])
        assert set(machine.floor.lines(session.id)).issuperset(lines)


def test_killed_and_started_again_ten_times_the_container_loses_nothing(image: Image, machine: Machine) -> None:
    for session in (machine.session(), machine.session(), machine.session()):
        session.write(1)
    open_to_the_account(machine)
    with notify_socket(machine) as notify:
        seconds = killed_and_started_again(
            machine, container(image, machine), notify, settled=lambda: everything_arrived(machine)
        )
    print(f"ready after {min(seconds):.2f} to {max(seconds):.2f} s")


def answers(port: int) -> bool:
    """Whether somebody listens there."""
    with closing(socket.socket()) as asking:
        return asking.connect_ex(("127.0.0.1", port)) == 0


def test_the_same_image_is_a_mission_control(image: Image, machine: Machine) -> None:
    data = machine.root / "mc"
    data.mkdir()
    os.chown(data, ACCOUNT, ACCOUNT)
    token = data / "token"
    token.write_text("made-up-token-of-this-test")
    os.chown(token, ACCOUNT, ACCOUNT)
    port = free_port()
    where = ["--host", "127.0.0.1", "--port", str(port), "--token-file", "/var/lib/exporter/token"]
    arguments = ["mission-control", "serve", *where]
    command = image.command(f"{machine.root.name}-mc", arguments, {}, {data: ("/var/lib/exporter", "rw")})
    serving = command_of(machine, {"PATH": os.environ["PATH"]}, command)
    machine.tables["team"] = {"url": f"http://127.0.0.1:{port}/agents", "token": token.read_text()}
    machine.session().write(50)

    until(lambda: serving.alive and answers(port), "the receiver", seconds=90)
    machine.deliver()
    machine.verify()
    serving.stop()
    assert serving.process.returncode == 0
