"""What holds for every test: a home of its own, no settings of this machine, and no network but loopback."""

import ipaddress
import os
import shutil
import socket
import tempfile
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, settings

from tests.shared import CACHE_HOME, REAL, turn

settings.register_profile("ci", derandomize=True, deadline=None, print_blob=True)
settings.register_profile("here", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ci" if os.environ.get("CI") else "here")

ISOLATED_PREFIXES: Final = ("EXPORTER_", "COPILOT_", "OTEL_", "XDG_")
TERMINAL: Final = frozenset({"COLUMNS", "LINES"})
"""What a shell, or a worker of pytest, says of a terminal that is not the test's."""
KEPT: Final = frozenset({"EXPORTER_REAL_DIR"})
"""Where `make real` put the real CLI; says nothing to the program."""


def pytest_configure() -> None:
    """Fixes where the real CLI is kept, before each test gets a cache directory of its own."""
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    os.environ.setdefault("EXPORTER_REAL_DIR", str(Path(cache, "exporter-real").expanduser()))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Says at the end, and not only with -rs, that the captures are missing and their tests were not run."""
    if not REAL.is_dir():
        terminalreporter.write_line(
            f"NOT TESTED WITH CAPTURES OF REAL SESSIONS: {REAL} is not there; EXPORTER_SHARED names another place",
            yellow=True,
            bold=True,
        )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Lets several workers begin with what takes longest, and end with what they do one after the other."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        items.sort(key=lambda item: (_is(item, "alone"), not _is(item, "slow")))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Keeps the other workers idle while a test runs that measures time."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return (yield)
    with turn(alone=_is(item, "alone")):
        return (yield)


def _is(item: pytest.Item, marker: str) -> bool:
    return item.get_closest_marker(marker) is not None


class NetworkForbiddenError(OSError):
    """A test tried to reach something that is not on loopback."""


@pytest.fixture(autouse=True)
def own_home() -> Iterator[Path]:
    """Gives the test an empty HOME and XDG directories; the path is short enough for a socket in it."""
    before = dict(os.environ)
    home = Path(tempfile.mkdtemp(prefix="xp-")).resolve()
    for name in before:
        if name in TERMINAL or (name.startswith(ISOLATED_PREFIXES) and name not in KEPT):
            del os.environ[name]
    os.environ["HOME"] = os.environ["USERPROFILE"] = str(home)
    for name in ("CONFIG", "STATE", "CACHE", "DATA"):
        os.environ[f"XDG_{name}_HOME"] = str(home / name.lower())
    (home / "run").mkdir(mode=0o700)
    os.environ["XDG_RUNTIME_DIR"] = str(home / "run")
    try:
        yield home
    finally:
        os.environ.clear()
        os.environ.update(before)
        shutil.rmtree(home, ignore_errors=True)


@pytest.fixture
def compiled(own_home: Path) -> None:
    """Lets programs of the test load the rules of the redactor that another test has compiled."""
    os.environ["XDG_CACHE_HOME"] = CACHE_HOME


@pytest.fixture
def installed(own_home: Path, compiled: None) -> None:
    """The same for programs that make no key and without one would compile the rules: here is one."""
    state = own_home / "state" / "exporter"
    state.mkdir(mode=0o700, parents=True)
    (state / "redaction.key").write_bytes(bytes(range(32)))


@pytest.fixture(autouse=True)
def no_network(request: pytest.FixtureRequest) -> Iterator[None]:
    """Refuses connections and look-ups that would leave the machine; tests of the real CLI fence themselves."""
    if request.node.get_closest_marker("real"):
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        for name in ("connect", "connect_ex"):
            patch.setattr(socket.socket, name, _guarded(getattr(socket.socket, name)))
        patch.setattr(socket, "getaddrinfo", _guarded_lookup(socket.getaddrinfo))
        yield


def _guarded(original: Callable[..., Any]) -> Callable[..., Any]:
    def connect(self: socket.socket, address: Any) -> Any:
        if self.family in (socket.AF_INET, socket.AF_INET6) and not _is_loopback(address[0]):
            raise NetworkForbiddenError(f"a test may not connect to {address[0]!r}")
        return original(self, address)

    return connect


def _guarded_lookup(original: Callable[..., Any]) -> Callable[..., Any]:
    def getaddrinfo(host: Any, *args: Any, **kwargs: Any) -> Any:
        if host is not None and not _is_loopback(host) and not _is_address(host):
            raise NetworkForbiddenError(f"a test may not look up {host!r}")
        return original(host, *args, **kwargs)

    return getaddrinfo


def _is_loopback(host: object) -> bool:
    text = host.decode() if isinstance(host, bytes) else str(host)
    return text == "localhost" or (_is_address(text) and ipaddress.ip_address(text).is_loopback)


def _is_address(host: object) -> bool:
    try:
        ipaddress.ip_address(host.decode() if isinstance(host, bytes) else str(host))
    except ValueError:
        return False
    return True
