"""Where settings come from, and which of two wins."""

import os
from pathlib import Path

import pytest

from config.errors import ConfigError
from config.load import load
from config.settings import KNOWN_ENV, Allow, Limits, QuotaSettings, ReceiverSettings, Redaction
from tests.config.loading import Loading


def test_without_anything_given_there_are_defaults_and_nothing_is_sent_anywhere(loading: Loading) -> None:
    loaded = loading()

    settings = loaded.settings
    assert (settings.mission_control, settings.otel) == ({}, {})
    assert (settings.redaction, settings.limits) == (Redaction(), Limits())
    assert settings.copilot_home == str(loading.home / ".copilot")
    assert settings.state_dir == str(loading.home / ".local/state/exporter")
    assert settings.cache_dir == str(loading.home / ".cache/exporter")
    assert set(loaded.origins.values()) == {"default"}
    assert (loaded.file, loaded.notes, loaded.found_not_used) == (None, [], [])


def test_flags_win_over_the_environment_which_wins_over_the_file(loading: Loading) -> None:
    text = "port = 1\nhistory_days = 1\ndrain_seconds = 1\n"
    environ = {"EXPORTER_PORT": "2", "EXPORTER_HISTORY_DAYS": "2"}

    loaded = loading(text, environ, {"port": 3, "history_days": None})

    settings = loaded.settings
    assert (settings.port, settings.history_days, settings.drain_seconds) == (3, 2, 1.0)
    assert loaded.origins["port"] == "flag --port"
    assert loaded.origins["history_days"] == "environment EXPORTER_HISTORY_DAYS"
    assert loaded.origins["drain_seconds"] == "file:3"
    assert loaded.origins["log_level"] == "default"


def test_origins_name_every_setting_of_every_sink(loading: Loading) -> None:
    loaded = loading('[mission_control]\nurl = "https://a"\n[otel.one]\nendpoint = "https://b"\n')

    assert loaded.file == loading.file
    assert loaded.origins["mission_control.default.url"] == "file:2"
    assert loaded.origins["otel.one.endpoint"] == "file:4"
    assert loaded.origins["otel.one.protocol"] == "default"
    assert loaded.origins["limits.open_files"] == "default"
    assert not {"mission_control", "otel.one", "limits"} & set(loaded.origins)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('[mission_control]\nurl = "https://a"', ["default"]),
        ('mission_control = { url = "https://a" }', ["default"]),
        ('mission_control.url = "https://a"', ["default"]),
        ('[mission_control.team]\nurl = "https://a"', ["team"]),
        ('[mission_control.default]\nurl = "https://a"', ["default"]),
        ('[mission_control.b]\nurl = "https://a"\n[mission_control.a-1]\nurl = "https://a"', ["a-1", "b"]),
        ("[mission_control]", []),
    ],
)
def test_a_table_is_one_sink_or_holds_sinks(loading: Loading, text: str, names: list[str]) -> None:
    assert list(loading(text).settings.mission_control) == names


def test_headers_as_a_table_do_not_make_a_sink_called_headers(loading: Loading) -> None:
    loaded = loading('[otel]\nendpoint = "https://a"\n[otel.headers]\nx = "y"\n')

    assert loaded.settings.otel["default"].headers == {"x": "y"}


def test_the_file_in_the_xdg_directory_is_read(loading: Loading, tmp_path: Path) -> None:
    (tmp_path / "exporter").mkdir()
    (tmp_path / "exporter/exporter.toml").write_text("port = 5")

    loaded = loading("port = 4", {"XDG_CONFIG_HOME": str(tmp_path)})

    assert loaded.settings.port == 5


def test_a_named_file_is_read_instead_of_the_default_one(loading: Loading, tmp_path: Path) -> None:
    loading("port = 4")
    named = tmp_path / "named.toml"
    named.write_bytes(b"\xef\xbb\xbfport = 5\r\n")  # as an editor on Windows writes it

    loaded = load(file=named, environ={"HOME": str(loading.home)}, flags={}, fallbacks=False)

    assert (loaded.settings.port, loaded.origins["port"]) == (5, "file:1")


def test_nothing_is_read_from_the_working_directory(
    loading: Loading, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "exporter").mkdir()
    for name in ("exporter.toml", "exporter/exporter.toml", ".env"):
        (tmp_path / name).write_text("port = 5")
    monkeypatch.chdir(tmp_path)

    assert loading(environ={"XDG_CONFIG_HOME": "."}).settings.port == 8411


def test_the_environment_is_the_one_given_and_not_that_of_the_process(
    loading: Loading, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXPORTER_PORT", "9")
    monkeypatch.setenv("XDG_STATE_HOME", "/elsewhere")
    monkeypatch.setenv("HOME", "/elsewhere")

    settings = loading().settings

    assert settings.port == 8411
    assert settings.state_dir.startswith(str(loading.home))


def test_xdg_directories_hold_state_and_cache_unless_set(loading: Loading) -> None:
    environ = {"XDG_STATE_HOME": "/s", "XDG_CACHE_HOME": "relative/is/ignored", "EXPORTER_STATE_DIR": "/own"}

    with_setting = loading(environ=environ)
    del environ["EXPORTER_STATE_DIR"]
    without = loading(environ=environ)

    assert with_setting.settings.state_dir == "/own"
    assert without.settings.state_dir == "/s/exporter"
    assert without.origins["state_dir"] == "fallback XDG_STATE_HOME"
    assert without.settings.cache_dir == str(loading.home / ".cache/exporter")


def test_without_a_home_only_what_is_below_it_fails() -> None:
    whole = {"EXPORTER_COPILOT_HOME": "/c", "EXPORTER_STATE_DIR": "/s", "EXPORTER_CACHE_DIR": "/k"}

    settings = load(file=None, environ=whole, flags={}, fallbacks=False).settings

    assert (settings.copilot_home, settings.state_dir, settings.cache_dir) == ("/c", "/s", "/k")
    with pytest.raises(ConfigError, match="HOME"):
        load(file=None, environ={}, flags={}, fallbacks=False)


def test_paths_are_absolute_once_loaded(loading: Loading, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = 'copilot_home = "~/c"\ncache_dir = "../k"\n[redaction]\nknown_files = ["~/a", "b", "/c/"]\n'

    settings = loading(text, flags={"state_dir": Path("s")}).settings

    assert settings.copilot_home == str(loading.home / "c")
    assert settings.cache_dir == str(loading.home / ".config/k"), "relative in a file: to the file"
    assert settings.state_dir == str(tmp_path / "s"), "relative on the command line: to where it was typed"
    assert settings.redaction.known_files == (str(loading.home / "a"), str(loading.file.parent / "b"), "/c")


@pytest.mark.parametrize(
    ("variable", "text", "expected"),
    [
        ("EXPORTER_REDACTION__KNOWN_ENV", "A*, *B ,,", ("A*", "*B")),
        ("EXPORTER_REDACTION__KNOWN_ENV", '["A,B"]', ("A,B",)),
        ("EXPORTER_REDACTION__KNOWN_ENV", "[]", ()),
        ("EXPORTER_REDACTION__KNOWN_ENV", "", KNOWN_ENV),
        ("EXPORTER_REDACTION__ALLOW", '[{"value": "v"}, {"rule": "r"}]', (Allow(value="v"), Allow(rule="r"))),
        ("EXPORTER_REDACTION__KNOWN_ENV_OF_CLI", "True", True),
        ("EXPORTER_REDACTION__KNOWN_ENV_OF_CLI", "0", False),
        ("EXPORTER_REDACTION__BUDGET_MS", " 2.5e2 ", 250.0),
    ],
)
def test_a_variable_gives_any_kind_of_setting(loading: Loading, variable: str, text: str, expected: object) -> None:
    redaction = loading(environ={variable: text}).settings.redaction

    assert getattr(redaction, variable.rpartition("__")[2].lower()) == expected


def test_variables_name_the_one_sink_or_a_sink_by_name(loading: Loading) -> None:
    environ = {
        "EXPORTER_MISSION_CONTROL__URL": "https://one/agents/",
        "EXPORTER_MISSION_CONTROL__TEAM__URL": "https://team",
        "EXPORTER_MISSION_CONTROL__TEAM__TOKEN": "t",
        "EXPORTER_OTEL__A__B__ENDPOINT": "https://otel",
    }

    settings = loading(environ=environ).settings

    assert {name: sink.url for name, sink in settings.mission_control.items()} == {
        "default": "https://one/agents",
        "team": "https://team",
    }
    assert settings.mission_control["team"].token == "t"
    assert list(settings.otel) == ["a__b"]


def test_a_variable_means_the_sink_of_the_file_that_it_cannot_spell(loading: Loading) -> None:
    text = '[mission_control.my-team]\nurl = "https://a"\n'

    settings = loading(text, {"EXPORTER_MISSION_CONTROL__MY_TEAM__TOKEN": "t"}).settings

    assert list(settings.mission_control) == ["my-team"]
    assert settings.mission_control["my-team"].token == "t"


def test_a_token_given_above_displaces_a_token_file_given_below(loading: Loading) -> None:
    text = '[mission_control]\nurl = "https://a"\ntoken_file = "missing"\n'

    loaded = loading(text, {"EXPORTER_MISSION_CONTROL__TOKEN": "t"})

    sink = loaded.settings.mission_control["default"]
    assert (sink.token, sink.token_file) == ("t", None)
    assert loaded.origins["mission_control.default.token_file"] == "default"


def test_a_flag_may_be_text_or_a_value(loading: Loading) -> None:
    flags = {"port": "7", "history_days": 3, "mission_control.url": "https://a", "limits.open_files": 8}

    loaded = loading(flags=flags)

    assert (loaded.settings.port, loaded.settings.limits.open_files) == (7, 8)
    assert loaded.origins["history_days"] == "flag --days"
    assert loaded.origins["mission_control.default.url"] == "flag --mission-control-url"


@pytest.mark.parametrize(
    ("variable", "nearest"),
    [
        ("EXPORTER_PROT", "did you mean EXPORTER_PORT?"),
        ("EXPORTER_MISION_CONTROL__URL", "did you mean EXPORTER_MISSION_CONTROL__URL?"),
        ("EXPORTER_ARCHIV__URL", "did you mean EXPORTER_ARCHIVE__URL?"),
        ("EXPORTER_PORT__X", ""),
        ("EXPORTER_LIMITS", ""),
        ("EXPORTER_XYZZY__A", ""),
        ("EXPORTER_port", ""),
    ],
)
def test_a_variable_that_is_no_setting_is_a_note(loading: Loading, variable: str, nearest: str) -> None:
    loaded = loading(environ={variable: "1"})

    (note,) = loaded.notes
    assert note.startswith(f"{variable} is not a setting")
    assert nearest in note


@pytest.mark.timeout(90)
def test_a_pipe_in_place_of_the_settings_file_is_refused_at_once(loading: Loading) -> None:
    os.mkfifo(loading.file)

    with pytest.raises(ConfigError, match="the settings file cannot be read: it is not a regular file"):
        loading()


def test_a_file_with_a_token_that_others_can_read_is_a_note(loading: Loading) -> None:
    loading.file.write_text('port = 1\n[mission_control]\nurl = "https://a"\ntoken = "hidden"\n')
    loading.file.chmod(0o644)

    (note,) = loading().notes
    loading.file.chmod(0o600)

    assert "exporter.toml:4" in note
    assert "chmod 600" in note
    assert "hidden" not in note
    assert loading().notes == []


def test_what_redaction_runs_or_trusts_is_never_looked_up_in_the_working_directory(
    loading: Loading, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)

    redaction = loading(
        "[redaction]\nplugins = ['p.py']\nbaselines = ['b']\nextra_rules = ['r.toml']"
    ).settings.redaction

    here = loading.file.parent
    assert redaction.plugins == (str(here / "p.py"),)
    assert redaction.baselines == (str(here / "b"),)
    assert redaction.extra_rules == (str(here / "r.toml"),)
    for name in ("PLUGINS", "BASELINES", "EXTRA_RULES"):
        with pytest.raises(ConfigError, match="a whole path"):
            loading(environ={f"EXPORTER_REDACTION__{name}": "in_this_directory"})


def test_a_table_in_a_table_is_given_by_the_file_a_variable_or_both(loading: Loading) -> None:
    text = '[receiver]\nstore = "/srv/mc.db"\n[receiver.quota]\nbytes = 5\nevents_per_second = 6\n'
    loaded = loading(text, {"EXPORTER_RECEIVER__QUOTA__BYTES": "7"})

    assert loaded.settings.receiver == ReceiverSettings(
        store="/srv/mc.db", quota=QuotaSettings(bytes=7, events_per_second=6)
    )
    assert loaded.origins["receiver.quota.bytes"] == "environment EXPORTER_RECEIVER__QUOTA__BYTES"
    assert loaded.origins["receiver.quota.events_per_second"] == "file:5"


@pytest.mark.parametrize(
    ("text", "environ", "said"),
    [
        ("[receiver.quota]\nbyte = 5\n", {}, "receiver.quota.byte is not a setting"),
        ("[receiver]\nquota = 5\n", {}, "expected receiver.quota to be a table"),
        ("[receiver.quota]\nbytes = 0\n", {}, "expected receiver.quota.bytes to be an integer from 1"),
        ("", {"EXPORTER_RECEIVER__QUOTA__BYTE": "5"}, "EXPORTER_RECEIVER__QUOTA__BYTE is not a setting"),
        ("", {"EXPORTER_RECEIVER__QUOTA": "5"}, "EXPORTER_RECEIVER__QUOTA is not a setting"),
    ],
)
def test_a_wrong_setting_in_a_table_in_a_table_is_named(
    loading: Loading, text: str, environ: dict[str, str], said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        loading(text, environ)


def test_a_store_given_above_displaces_a_store_file_given_below_and_one_place_gives_one(loading: Loading) -> None:
    text = '[receiver]\nstore_file = "/srv/store.url"\n'

    loaded = loading(text, {"EXPORTER_RECEIVER__STORE": "postgresql://db/mc"})
    assert (loaded.settings.receiver.store, loaded.settings.receiver.store_file) == ("postgresql://db/mc", None)
    with pytest.raises(ConfigError, match=r"expected one of receiver\.store_file and store, given both"):
        loading(text + 'store = "/srv/mc.db"\n')
