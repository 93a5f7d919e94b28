"""What the tests with the real CLI share: one cage, one model, and a station per version of the CLI."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from pathlib import Path

import pytest

from tests.real import install
from tests.real.account import Account
from tests.real.cage import Cage
from tests.real.cli import Copilot, Run
from tests.real.model import Model
from tests.real.scripts import TOP_LEVEL
from tests.real.station import Station

# Sessions mostly wait; two at a time keep two cores busy and no more.
SESSIONS_AT_A_TIME = 2
PLAYED = [(install.NEW, name) for name in TOP_LEVEL] + [
    (install.OLD, name) for name in ("hello", "bash", "secrets", "bgboth", "sub_sync", "sub_bg", "instr")
]

MakeCopilot = Callable[[str, str], Copilot]


@pytest.fixture(scope="session")
def cage() -> Iterator[Cage]:
    """The isolated loopback everything runs in."""
    with Cage() as made:
        yield made


@pytest.fixture(scope="session")
def make_copilot(cage: Cage, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MakeCopilot]:
    """A CLI of a version, with a COPILOT_HOME of its own, against the scripted model."""
    # Here, because npm needs its settings from the home directory that each test replaces by one of its own.
    for version in (install.NEW, install.OLD):
        install.command(version)
    with Model(cage.listen()) as model:

        def make(version: str, name: str) -> Copilot:
            directory = tmp_path_factory.mktemp(name)
            (directory / "home").mkdir()
            return Copilot(cage, model.port, directory / "home", directory / "scratch", version)

        yield make


@pytest.fixture(scope="session")
def account(cage: Cage) -> Iterator[Account]:
    """The account that the CLI's own uploader asks for."""
    with Account(cage.listen()) as made:
        yield made


@pytest.fixture(scope="session")
def station_of(
    make_copilot: MakeCopilot, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], Station]]:
    """The station of a version, started when it is first asked for."""
    made: list[Station] = []

    @cache
    def station(version: str) -> Station:
        directory: Path = tmp_path_factory.mktemp("station") / version
        made.append(Station(make_copilot(version, f"copilot-{version}"), directory))
        return made[-1]

    yield station
    for each in made:
        each.close()


@pytest.fixture(scope="session")
def plays(station_of: Callable[[str], Station]) -> Iterator[dict[tuple[str, str], Future[Run]]]:
    """Every scenario of `PLAYED`, being played while its station follows."""
    for version in {version for version, _ in PLAYED}:
        station_of(version)
    pool = ThreadPoolExecutor(SESSIONS_AT_A_TIME)
    yield {(version, name): pool.submit(station_of(version).copilot.play, name) for version, name in PLAYED}
    pool.shutdown(cancel_futures=True)
