"""The parts of `make soak`. A new one is a row here."""

import sys
from dataclasses import dataclass, field
from typing import Final


@dataclass(frozen=True, slots=True)
class Part:
    """One long run. `command` are the arguments of this interpreter, `environment` is added to the present one."""

    name: str
    what: str
    minutes: int
    command: tuple[str, ...]
    environment: dict[str, str] = field(default_factory=dict)

    def line(self, more: list[str]) -> list[str]:
        """Return the command line, with further arguments."""
        return [sys.executable, *self.command, *more]


PARTS: Final = (
    Part(
        "backends",
        "sessions of a month, restarts, outages and quiet in the real backends that are there",
        20,
        ("-m", "pytest", "-q", "-m", "real", "tests/backends"),
    ),
    Part(
        "hour",
        "a session of the past and one of now in the real backends: at once, an hour later, after a restart",
        76,
        ("-m", "pytest", "-q", "-m", "real", "tests/backends/test_hour.py"),
        {"BACKENDS_WAIT_MINUTES": "61"},
    ),
    Part(
        "schedules",
        "a million simulated schedules of delivery",
        30,
        ("-m", "tests.simulation", "--schedules", "1000000"),
    ),
    Part("soak", "two hours of work in twenty minutes: what grows?", 22, ("-m", "tests.soak.flow")),
    Part(
        "hostile",
        "ten minutes of receivers that answer anything",
        12,
        ("-m", "pytest", "-q", "tests/sinks/test_hostile_receiver.py"),
        {"HOSTILE_SECONDS": "600"},
    ),
    Part(
        "histories",
        "300,000 random histories of agent hosts that restart",
        30,
        ("-m", "tests.core.ahp.histories", "--count", "300000"),
    ),
    Part(
        "hosts",
        "real agent hosts and the exporter restarted, killed and cut off, after each group of prompts",
        20,
        ("-m", "pytest", "-q", "-m", "real", "tests/real/test_ahp_source.py", "-k", "doubles_or_loses"),
        {"AHP_EACH": "1"},
    ),
    Part(
        "secrets",
        "a million fresh secrets of every kind, looked for in all that comes out",
        30,
        ("-m", "tests.planted", "--secrets", "1000000"),
    ),
    Part(
        "fleet",
        "six receivers on PostgreSQL and 200 uploaders, while receivers, backends and the server are killed",
        15,
        ("-m", "pytest", "-q", "-s", "tests/missioncontrol/test_chaos.py", "-k", "killed", "-o", "timeout=2000"),
        {"CHAOS_SESSIONS": "86", "CHAOS_EVENTS": "1200", "CHAOS_RECEIVERS": "6", "CHAOS_FAULTS": "40"},
    ),
    Part(
        "image",
        "the image, built of locked packages, and killed ten times as a container; the Debian package and one file too",
        30,
        ("-m", "pytest", "-q", "-rP", "-m", "real", "tests/packages/test_image.py", "tests/packages/test_bundles.py"),
        {"IMAGE_DIRECTORY": "dist/image-build", "RESTARTS": "10"},
    ),
)
