"""Every mistake is reported where it was made, with what was expected and the nearest key."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from config.errors import ConfigError
from config.load import load, wants_json_log
from tests.config.loading import Loading

IN_FILE = [
    # text, line, key, what the message or the hint says
    ("port = 1\nprot = 2", 2, "prot", "did you mean port?"),
    ("xyzzy = 2", 1, "xyzzy", "expected one of copilot_home, state_dir"),
    ("[limits]\nopen_file = 2", 2, "limits.open_file", "did you mean open_files?"),
    ("[mission_control]\nurll = 'x'", 2, "mission_control.urll", "did you mean url?"),
    ("[mission_control.a]\nurl = 'https://x'\ntoke = 'x'", 3, "mission_control.a.toke", "did you mean token?"),
    ("[redaction]\n[[redaction.allow]]\nvalu = 'x'", 3, "redaction.allow.valu", "did you mean value?"),
    ("\nport = 'x'", 2, "port", 'expected port to be an integer from 0 to 65535, given "x"'),
    ("port = true", 1, "port", "given true"),
    ("port = 65536", 1, "port", "given 65536"),
    ("port = -1", 1, "port", "given -1"),
    ("port = 1.5", 1, "port", "given 1.5"),
    ("port = [1]", 1, "port", "given an array"),
    ("port = {}", 1, "port", "given a table"),
    ("port = 2020-01-01", 1, "port", "given another value"),
    ("drain_seconds = nan", 1, "drain_seconds", "a number from 0 to 60, given nan"),
    ("drain_seconds = inf", 1, "drain_seconds", "given inf"),
    ("host_name = ''", 1, "host_name", "a text of 1 to 255 characters"),
    ("log_level = 'loud'", 1, "log_level", 'one of "debug", "info", "warning", "error", given "loud"'),
    ("state_dir = ''", 1, "state_dir", "expected state_dir to be a path"),
    ("state_dir = '~else/x'", 1, "state_dir", "whole path"),
    ('state_dir = "a\\u0000b"', 1, "state_dir", "expected state_dir to be a path"),
    ("limits = 3", 1, "limits", "expected limits to be a table"),
    ("mission_control = 'https://x'", 1, "mission_control", "write [mission_control] on a line of its own"),
    ("[redaction]\nknown_env = 'X'", 2, "redaction.known_env", "an array of texts"),
    ("[redaction]\nknown_env = ['X', 1]", 2, "redaction.known_env", "an array of texts"),
    ("[redaction]\nknown_files = [\n'/a',\n'']", 4, "redaction.known_files", "to be a path"),
    ("[redaction]\nallow = 'x'", 2, "redaction.allow", "an array of tables"),
    ("[redaction]\nallow = ['x']", 2, "redaction.allow", "an array of tables"),
    ("[[redaction.allow]]", 1, "redaction.allow", "one of value, regex, rule, path, given 0"),
    ("[[redaction.allow]]\nvalue='a'\n[[redaction.allow]]\nvalue='a'\nrule='b'", 3, "redaction.allow", "given 2"),
    ("[[redaction.allow]]\nvalue = ''", 2, "redaction.allow.value", "a text that is not empty"),
    ("[[redaction.allow]]\nregex = '('", 2, "redaction.allow.regex", "a regular expression"),
    ("[[redaction.allow]]\nregex = 'a*'", 2, "redaction.allow.regex", "matches the empty text"),
    ("[[redaction.allow]]\npath = '**/*'", 2, "redaction.allow.path", "names every file"),
    ("[[source]]\nurl = 'tap'\n[[source]]\npush = true", 3, "source.url", "to have a url"),
    ("[[source]]\nurl = 'http://127.0.0.1:1'", 2, "source.url", "expected file, tap, rpc://HOST:PORT, ahp+ws"),
    ("[[source]]\nurl = 'rpc://127.0.0.1'", 2, "source.url", "expected file, tap, rpc://HOST:PORT, ahp+ws"),
    ("[[source]]\nurl = 'rpc://127.0.0.1:x'", 2, "source.url", "expected file, tap, rpc://HOST:PORT, ahp+ws"),
    ("[[source]]\nurl = 'rpc://a@127.0.0.1:1'", 2, "source.url", "must not contain a token"),
    ("[[source]]\nurl = 'rpc://127.0.0.1:1?token=x'", 2, "source.url", "must not contain a token"),
    ("[[source]]\nurl = 'rpc://127.0.0.1:1?tokn=x'", 2, "source.url", "only token_file=FILE may follow"),
    ("[[source]]\nurl = 'tap'\npush = true", 2, "source.url", "for rpc:// only"),
    ("[[source]]\nurl = 'rpc://a.example.com:1?token_file=/x'", 2, "source.url", "through a tunnel"),
    ("[[source]]\nurl = 'tap'\ntoken_file = '/x'", 2, "source.url", "for rpc:// and ahp+ws:// only"),
    ("[[source]]\nurl = 'ahp+ws://127.0.0.1'", 2, "source.url", "expected file, tap, rpc://HOST:PORT, ahp+ws"),
    ("[[source]]\nurl = 'ahp+ws://127.0.0.1:1/?tkn=x'", 2, "source.url", "must not contain a token"),
    ("[[source]]\nurl = 'ahp+ws://127.0.0.1:1/#x'", 2, "source.url", "expected file, tap, rpc://HOST:PORT, ahp+ws"),
    ("[[source]]\nurl = 'ahp+ws://127.0.0.1:1'\npush = true", 2, "source.url", "for rpc:// only"),
    ("[[source]]\nurl = 'ahp+ws://a.example.com:1?token_file=/x'", 2, "source.url", "use ahp+wss://, or"),
    ("[[source]]\nurl = 'rpc://127.0.0.1:1'\ntoken_file = '/no/x'", 3, "source.token_file", "cannot be read"),
    ("[[source]]\nurl = 'rpc://127.0.0.1:1'\npsh = true", 3, "source.psh", "did you mean push?"),
    ("source = 'tap'", 1, "source", "an array of tables"),
    ("[redaction]\nmarker = 'none'", 2, "redaction.marker", '"tag", "stars"'),
    ("[redaction]\nopaque = 'mask'", 2, "redaction.opaque", '"pass", "drop"'),
    ("[redaction]\nplugins = 'one.py'", 2, "redaction.plugins", "an array of texts"),
    ("[otel]\nendpoint = 'https://x'\nsignals = []", 3, "otel.signals", 'some of "traces", "metrics", "logs"'),
    ("[otel]\nendpoint = 'https://x'\nsignals = ['trace']", 3, "otel.signals", "some of"),
    ("[otel]\nendpoint = 'https://x'\nprotocol = 'http/json'", 3, "otel.protocol", '"http/protobuf", "grpc"'),
    ("[otel]\nendpoint = 'https://x'\nappend_path = false", 3, "otel.append_path", "one of the signals"),
    ("[otel]\nendpoint = 'https://x'\nclient_key_file = '/k'", 3, "otel.client_key_file", "together"),
    ("[otel]\nendpoint = 'https://x'\nheaders = {'a b' = 'x'}", 3, "otel.headers", "an invalid name of a header"),
    ("[mission_control]\nlive = true", 2, "mission_control.default.url", "mission_control.default has no url"),
    ("[mission_control.a]\n[mission_control.b]\nurl = 'https://x'", 1, "mission_control.a.url", "mission_control.b"),
    ("[mission_control]\nurl = 'https://x'\n[mission_control.a]\nurl = 'https://y'", 3, "mission_control.a", "move"),
    ("[otel]\nendpoint = 'https://x'\n[otel.header]\na = 'b'", 3, "otel.header", "did you mean headers?"),
    ("[mission_control.a]\nurl = 'https://x'\n[mission_control.b]\nx = 1", 4, "mission_control.b.x", "not a setting"),
    ("[mission_control]\na = {url = 'https://x'}\nb = 1", 3, "mission_control.b", "mission_control.b is not a setting"),
    ("[mission_control.Team]\nurl = 'https://x'", 1, "mission_control.Team", "a-z, 0-9"),
    ("[otel.'a b']\nendpoint = 'https://x'", 1, "otel.a b", "a-z, 0-9"),
    ("[otel.'']\nendpoint = 'https://x'", 1, "otel.", "a-z, 0-9"),
    ("[mission_control]\nurl = 'https://x'\ntoken = 'a b'", 3, "mission_control.token", "to be a token"),
    ("[mission_control]\nurl = 'https://x'\ntoken = ''", 3, "mission_control.token", "given nothing"),
    (
        "[mission_control]\nurl = 'https://x'\ntoken = 5",
        3,
        "mission_control.token",
        "to be a text, given another value",
    ),
    (
        "[mission_control]\nurl = 'https://x'\ntoken = 'x'\ntoken_file = '/x'",
        3,
        "mission_control.token",
        "expected one of mission_control.token and token_file, given both",
    ),
]


@pytest.mark.parametrize(("text", "line", "key", "said"), IN_FILE)
def test_a_mistake_in_the_file_is_reported_with_its_line(
    loading: Loading, text: str, line: int, key: str, said: str
) -> None:
    with pytest.raises(ConfigError) as raised:
        loading(text)

    error = raised.value
    assert error.where == f"{loading.file}:{line}"
    assert error.key == key
    assert said in f"{error.message} {error.hint}"
    assert str(error).startswith(f"{error.where}: ")


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("port = 1\nport 2", 2, "not TOML: Expected '='"),
        ("port = yes", 1, "put text in quotes"),
        ("port = 1\nport = 2", 2, "not TOML: Cannot overwrite"),
        ("[limits]\n[limits]", 2, "not TOML: Cannot declare"),
        ("port = 1\n\nstate_dir = '", 3, "not TOML"),
        ("port = 1\n[limits", 2, "not TOML"),
    ],
)
def test_what_is_not_toml_is_reported_with_its_line(loading: Loading, text: str, line: int, said: str) -> None:
    with pytest.raises(ConfigError) as raised:
        loading(text)

    assert raised.value.where == f"{loading.file}:{line}"
    assert said in f"{raised.value.message} {raised.value.hint}"


@pytest.mark.parametrize(
    ("content", "where", "said"),
    [
        (b"port = 1\n# caf\xe9\n", ":2", "expected UTF-8"),
        (b"a = " + b"[" * 100_000, "", "nested too deeply"),
        (b"#" * (1024 * 1024 + 1), "", "larger than 1048576 bytes"),
    ],
)
def test_a_file_that_no_person_wrote_is_refused(loading: Loading, content: bytes, where: str, said: str) -> None:
    loading.file.write_bytes(content)

    with pytest.raises(ConfigError) as raised:
        loading()

    assert raised.value.where == f"{loading.file}{where}"
    assert said in raised.value.message


def test_a_named_file_must_exist(loading: Loading, tmp_path: Path) -> None:
    missing = tmp_path / "missing.toml"

    with pytest.raises(ConfigError, match="No such file") as raised:
        load(file=missing, environ={"HOME": str(loading.home)}, flags={}, fallbacks=False)

    assert raised.value.where == str(missing)


def test_a_default_file_that_is_there_must_be_readable(loading: Loading) -> None:
    loading.file.symlink_to("gone")

    with pytest.raises(ConfigError, match="No such file"):
        loading()
    loading.file.unlink()
    loading.file.mkdir()

    with pytest.raises(ConfigError, match="Is a directory"):
        loading()


@pytest.mark.parametrize(
    ("environ", "key", "said"),
    [
        ({"EXPORTER_PORT": "x"}, "port", 'an integer from 0 to 65535, given "x"'),
        ({"EXPORTER_PORT": "9" * 5000}, "port", "an integer from 0 to 65535"),
        ({"EXPORTER_STATE_DIR": "relative"}, "state_dir", "whole path"),
        ({"COPILOT_HOME": "relative"}, "COPILOT_HOME", "whole path"),
        ({"EXPORTER_REDACTION__KNOWN_ENV_OF_CLI": "maybe"}, "redaction.known_env_of_cli", "true or false"),
        ({"EXPORTER_REDACTION__KNOWN_ENV": "[1]"}, "redaction.known_env", "an array of texts"),
        ({"EXPORTER_REDACTION__KNOWN_ENV": "["}, "redaction.known_env", "an array of texts"),
        ({"EXPORTER_REDACTION__ALLOW": "x"}, "redaction.allow", "an array of tables"),
        ({"EXPORTER_REDACTION__ALLOW": "x"}, "redaction.allow", "in a variable these are JSON"),
        (
            {"EXPORTER_LIMITS__OPEN_FILE": "1"},
            "EXPORTER_LIMITS__OPEN_FILE",
            "did you mean EXPORTER_LIMITS__OPEN_FILES?",
        ),
        ({"EXPORTER_LIMITS__A__OPEN_FILES": "1"}, "EXPORTER_LIMITS__A__OPEN_FILES", "is not a setting"),
        ({"EXPORTER_LIMITS__": ""}, "EXPORTER_LIMITS__", "is not a setting"),
        ({"EXPORTER_OTEL__X__ENDPONT": "x"}, "EXPORTER_OTEL__X__ENDPONT", "did you mean EXPORTER_OTEL__X__ENDPOINT?"),
        ({"EXPORTER_OTEL____ENDPOINT": "https://x"}, "otel.", "a-z, 0-9"),
        ({"EXPORTER_OTEL__A.B__ENDPOINT": "https://x"}, "otel.a.b", "a-z, 0-9"),
        ({"EXPORTER_OTEL__PROTOCOL": "grpc"}, "otel.default.endpoint", "has no endpoint"),
        ({"EXPORTER_MISSION_CONTROL__URL": "nothing"}, "mission_control.url", "does not begin with http"),
    ],
)
def test_a_mistake_in_a_variable_is_reported_with_its_name(
    loading: Loading, environ: Mapping[str, str], key: str, said: str
) -> None:
    with pytest.raises(ConfigError) as raised:
        loading(environ=environ)

    error = raised.value
    assert error.where == next(iter(environ))
    assert error.key == key
    assert said in f"{error.message} {error.hint}"


def test_a_variable_that_may_mean_two_sinks_is_refused(loading: Loading) -> None:
    text = '[otel.a-b_c]\nendpoint = "https://x"\n[otel.a_b-c]\nendpoint = "https://x"\n'

    with pytest.raises(ConfigError, match="a-b_c or a_b-c"):
        loading(text, {"EXPORTER_OTEL__A_B_C__PROTOCOL": "grpc"})


def test_an_empty_path_in_a_flag_is_not_the_working_directory(loading: Loading) -> None:
    with pytest.raises(ConfigError, match="expected state_dir to be a path") as raised:
        loading(flags={"state_dir": ""})

    assert raised.value.where == "--state-dir"


def test_a_mistake_in_a_flag_is_reported_with_the_flag(loading: Loading) -> None:
    with pytest.raises(ConfigError) as raised:
        loading(flags={"history_days": -1})

    assert raised.value.where == "--days"
    assert "an integer from 0 to 36500, given -1" in raised.value.message


@pytest.mark.parametrize(
    ("text", "variable", "wants"),
    [
        ('port = "x"\nlog_format = "json"', None, True),
        ("log_format = 'json'\nport = [", None, True),
        ('log_format = "json"', "text", False),
        ("", "json", True),
        ('log_format = "text"', None, False),
        ('# log_format = "json"\n[otel]\nlog_format = "json"', None, False),
        (None, None, False),
    ],
)
def test_the_form_of_the_log_is_known_where_the_settings_are_wrong(
    tmp_path: Path, text: str | None, variable: str | None, wants: bool
) -> None:
    file = tmp_path / "exporter.toml"
    if text is not None:
        file.write_text(text)

    assert wants_json_log(file, {} if variable is None else {"EXPORTER_LOG_FORMAT": variable}) is wants
