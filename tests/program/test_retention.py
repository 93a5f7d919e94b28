"""What the settings say of keeping is what Mission Control does, inside the exporter and alone."""

import re
import signal
import subprocess

import httpx
import pytest

from tests.program.driver import Machine

UP = ("up", "--no-open")
SERVE = ("mission-control", "serve", "--port", "0")


@pytest.mark.parametrize(
    ("arguments", "kept"),
    [
        (UP, ("3 days", "2.0 GB")),
        (SERVE, ("3 days", "2.0 GB")),
        ((*SERVE, "--keep-days", "9"), ("9 days", "2.0 GB")),
        ((*SERVE, "--keep-days", "0", "--keep-gb", "0"), ("no limit", "no limit")),
    ],
)
def test_how_long_and_how_much_is_kept_can_be_set(
    machine: Machine, arguments: tuple[str, ...], kept: tuple[str, str]
) -> None:
    machine.environment |= {"EXPORTER_LIMITS__KEEP_DAYS": "3", "EXPORTER_LIMITS__KEEP_GB": "2"}
    process = subprocess.Popen(
        machine.command(*arguments),
        env=machine.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout is not None
        url = next(found[0] for line in process.stdout if (found := re.search(r"http://127\.0\.0\.1:\d+/", line)))
        page = httpx.get(f"{url}health").text
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=90)

    shown = dict(re.findall(r"<dt>(Retention|Size limit)</dt><dd>(.*?)</dd>", page))
    assert shown == {"Retention": kept[0], "Size limit": kept[1]}
