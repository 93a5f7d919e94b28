"""What may be compared of settings: all of them that are no secret, and nothing that has to differ by machine."""

from pathlib import Path

import pytest

from config.drift import comparable
from config.fields import leaves
from config.settings import Allow, Archive, MissionControl, Otel, QuotaSettings, ReceiverSettings, Redaction, Settings

SECRET = "s3cr3t-v4lu3"


def test_every_setting_is_compared_but_secrets_and_the_name_of_the_machine() -> None:
    settings = Settings(
        mission_control={"team": MissionControl(url=f"https://me:{SECRET}@mc.example.com/agents", token=SECRET)},
        otel={"default": Otel(endpoint=f"https://{SECRET}@otel.example.com", headers={"authorization": SECRET})},
        archive={"default": Archive(url="file:///var/backups")},
        receiver=ReceiverSettings(store=f"postgresql://mc:{SECRET}@db/mc", quota=QuotaSettings(bytes=7)),
        redaction=Redaction(allow=(Allow(regex="EXAMPLE"),)),
        host_name="laptop",
    )

    found = comparable(settings)

    assert SECRET not in repr(found)
    secret = {"mission_control.team.token", "otel.default.headers", "receiver.store"}
    sinks = {"mission_control": "team", "otel": "default", "archive": "default"}
    every = {".".join((path[0], sinks[path[0]], *path[1:]) if path[0] in sinks else path) for path in leaves(Settings)}
    assert set(found) == every - secret - {"host_name"}
    assert (found["receiver.quota.bytes"], found["limits.keep_days"]) == ("7", "365")
    assert found["redaction.allow"] == '[{"path": null, "regex": "EXAMPLE", "rule": null, "value": null}]'


def test_the_home_of_who_runs_it_is_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for home in ("/home/ann", "/home/bob"):
        monkeypatch.setenv("HOME", home)
        known = (f"{home}/mc.token", "/etc/mc.token")
        found.append(comparable(Settings(state_dir=f"{home}/state", redaction=Redaction(known_files=known))))

    assert found[0] == found[1]
    assert (found[0]["state_dir"], Path("~").expanduser()) == ('"~/state"', Path("/home/bob"))
