"""Addresses of sinks, where their secrets may go, and that no error shows one."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from config.errors import ConfigError
from config.token import read_token
from tests.config.loading import Loading

SECRET = "s3cr3t-v4lu3"


@pytest.mark.parametrize(
    "url",
    [
        "",
        "mc.example.com",
        "ftp://x",
        "https://",
        "https:///agents",
        "https://:80",
        "https://x:port",
        "https://x:99999",
        "https://x:0",
        "https://[::1",
        "https://x y",
        "https://x\n",
        "https://x\\y",
        "https://x?key=1",
        "https://x#top",
        "https://x%2fy/",
        " https://x",
        "file:///etc/passwd",
        "javascript:alert(1)",
    ],
)
def test_a_bad_address_is_refused(loading: Loading, url: str) -> None:
    with pytest.raises(ConfigError, match="an http:// or https:// address"):
        loading(flags={"mission_control.url": url})


@pytest.mark.parametrize(
    ("url", "taken"),
    [
        ("https://mc.example.com/agents/", "https://mc.example.com/agents"),
        ("http://127.0.0.1:8411/agents", "http://127.0.0.1:8411/agents"),
        ("HTTPS://X", "HTTPS://X"),
        ("https://[::1]:8080", "https://[::1]:8080"),
        ("https://user:password@x/a", "https://user:password@x/a"),
    ],
)
def test_a_sound_address_is_taken_without_slashes_at_its_end(loading: Loading, url: str, taken: str) -> None:
    assert loading(flags={"mission_control.url": url}).settings.mission_control["default"].url == taken


LOOPBACK = ["localhost", "127.0.0.1", "127.255.0.9", "[::1]", "LOCALHOST", "localhost:8411"]
ELSEWHERE = [
    "example.com",
    "10.0.0.1",
    "0.0.0.0",
    "[::]",
    "[fe80::1]",
    "localhost.example.com",
    "127.0.0.1.example.com",
    "127.1",
    "0x7f.0.0.1",
    "2130706433",
    "[::ffff:127.0.0.1]",
    "128.0.0.1",
]


@pytest.mark.parametrize("host", LOOPBACK)
def test_a_token_goes_over_http_to_loopback(loading: Loading, host: str) -> None:
    flags = {"mission_control.url": f"http://{host}/agents", "mission_control.token": SECRET}

    assert loading(flags=flags).settings.mission_control["default"].token == SECRET


@pytest.mark.parametrize("host", ELSEWHERE)
def test_a_token_never_goes_over_http_to_elsewhere_unless_allowed(loading: Loading, host: str) -> None:
    flags = {"mission_control.url": f"http://{host}", "mission_control.token": SECRET}

    with pytest.raises(ConfigError, match=r"anybody on the way could read mission_control\.token") as raised:
        loading(flags=flags)

    assert "allow_http" in raised.value.hint
    assert loading(flags={**flags, "mission_control.allow_http": True}).settings.mission_control
    assert loading(flags={**flags, "mission_control.url": f"https://{host}"}).settings.mission_control
    assert loading(flags={"mission_control.url": f"http://{host}"}).settings.mission_control


@pytest.mark.parametrize(
    "text",
    [
        f"[mission_control]\nurl = 'http://me:{SECRET}@example.com'",
        f"[otel]\nendpoint = 'http://me:{SECRET}@example.com'",
        f"[otel]\nendpoint = 'http://example.com'\nheaders = {{ a = '{SECRET}' }}",
        f"[mission_control]\nurl = 'http://localhost@example.com'\ntoken = '{SECRET}'",
    ],
)
def test_credentials_of_any_kind_do_not_go_over_http_to_elsewhere(loading: Loading, text: str) -> None:
    with pytest.raises(ConfigError, match="anybody on the way") as raised:
        loading(text)

    assert SECRET not in str(raised.value)


@pytest.mark.parametrize(
    "text",
    [
        f"[mission_control]\nurl = 'ftp://me:{SECRET}@x'",
        f"[mission_control]\nurl = 'me:{SECRET}@x'",
        f"[mission_control]\nurl = 'https://me:{SECRET}/?#@x y'",
        f"[mission_control]\nurl = 'https://x?token={SECRET}'",
        f"[mission_control]\nurl = 'https://x'\ntoken = ['{SECRET}']",
        f"[mission_control]\nurl = 'https://x'\ntoken = '{SECRET} '",
        f"[mission_control]\nurl = 'https://x'\ntoken = '{SECRET}'\ntoken_file = 'x'",
        f"[mission_control]\nurl = 'https://x'\ntoken = '{SECRET}'\ntoken = '{SECRET}'",
        f"[mission_control]\nurl = 'https://x'\ntoken = {SECRET}",
        f"[otel]\nendpoint = 'https://x'\nheaders = '{SECRET}'",
        f'[otel]\nendpoint = "https://x"\nheaders = {{ a = "{SECRET}\\u0000" }}',
        f"[mission_control]\nurl = '{SECRET}'",
        f'[otel]\nendpoint = "https://x"\nheaders = {{ a = "{SECRET}\\n" }}',
    ],
)
def test_no_error_shows_a_secret(loading: Loading, text: str) -> None:
    with pytest.raises(ConfigError) as raised:
        loading(text)

    error = raised.value
    assert SECRET not in f"{error!r} {error} {error.hint} {error.key} {error.where}"
    assert error.__cause__ is None
    assert error.__suppress_context__ or error.__context__ is None


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "No such file"),
        (b"", "given nothing"),
        (b" \n", "given nothing"),
        (f"{SECRET}\n{SECRET}".encode(), "given a text with spaces, line ends"),
        (SECRET.encode() + b"\xff", "given other bytes"),
        (SECRET.encode() * 10_000, "larger than 65536 bytes"),
    ],
)
def test_a_token_file_that_holds_no_token_is_refused_at_start(
    loading: Loading, content: bytes | None, said: str
) -> None:
    file = loading.home / "mc.token"
    if content is not None:
        file.write_bytes(content)

    with pytest.raises(ConfigError) as raised:
        loading("[mission_control]\nurl = 'https://x'\ntoken_file = '~/mc.token'\n")

    error = raised.value
    assert error.where == f"{loading.file}:3"
    assert error.key == "mission_control.token_file"
    assert said in error.message
    assert str(file) in error.message
    assert SECRET not in str(error)


def test_a_token_file_that_cannot_be_read_is_refused(loading: Loading) -> None:
    (loading.home / "mc.token").mkdir()

    with pytest.raises(ConfigError, match="Is a directory"):
        loading("[mission_control]\nurl = 'https://x'\ntoken_file = '~/mc.token'\n")


@pytest.mark.timeout(90)
@pytest.mark.parametrize(
    ("make", "said"),
    [
        (os.mkfifo, "it is not a regular file"),
        (lambda path: path.symlink_to("/dev/zero"), "it is a link out of its directory, to /dev/zero"),
        (lambda path: path.symlink_to(path), "Too many levels"),
    ],
)
@pytest.mark.parametrize("setting", ["[mission_control]\nurl", "[otel]\nendpoint"])
def test_a_file_of_secrets_that_another_placed_is_refused_at_once(
    loading: Loading, make: Callable[[Path], None], said: str, setting: str
) -> None:
    make(loading.home / "mc.token")
    name = "token_file" if "mission" in setting else "headers_file"

    with pytest.raises(ConfigError, match=said):
        loading(f"{setting} = 'https://x'\n{name} = '~/mc.token'\n")


def test_a_token_file_may_be_a_link_to_one_below_its_directory(loading: Loading) -> None:
    """As Kubernetes mounts secrets."""
    (loading.home / "..data").mkdir()
    (loading.home / "..data" / "mc.token").write_text(SECRET)
    (loading.home / "mc.token").symlink_to("..data/mc.token")

    loaded = loading("[mission_control]\nurl = 'https://x'\ntoken_file = '~/mc.token'\n")

    assert read_token(loaded.settings.mission_control["default"]) == SECRET


@pytest.mark.parametrize(
    ("environ", "fallbacks"),
    [
        ({"EXPORTER_MISSION_CONTROL__URL": "https://x", "EXPORTER_MISSION_CONTROL__TOKEN": f"{SECRET}\n"}, False),
        ({"EXPORTER_OTEL__ENDPOINT": "https://x", "EXPORTER_OTEL__HEADERS": SECRET}, False),
        ({"COPILOT_MC_BASE_URL": "http://x", "COPILOT_MC_ACCESS_TOKEN": SECRET}, True),
        ({"COPILOT_MC_BASE_URL": "https://x", "COPILOT_MC_ACCESS_TOKEN": f"a {SECRET}"}, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "https://x", "OTEL_EXPORTER_OTLP_HEADERS": SECRET}, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": f"https://x?{SECRET}"}, True),
    ],
)
def test_no_error_about_a_variable_shows_a_secret(
    loading: Loading, environ: Mapping[str, str], fallbacks: bool
) -> None:
    with pytest.raises(ConfigError) as raised:
        loading(environ=environ, fallbacks=fallbacks)

    assert raised.value.where in environ
    assert SECRET not in f"{raised.value!r} {raised.value} {raised.value.hint} {raised.value.key}"


@pytest.mark.timeout(90)
def test_a_pipe_in_place_of_a_certificate_file_is_refused_at_once(loading: Loading) -> None:
    os.mkfifo(loading.home / "ca.pem")

    with pytest.raises(ConfigError, match="certificate_file cannot be read: it is not a regular file"):
        loading("[mission_control]\nurl = 'https://x'\ncertificate_file = '~/ca.pem'\n")


@pytest.mark.parametrize(
    ("content", "said", "hint"),
    [
        (None, "certificate_file cannot be read: No such file", "check that the file is there"),
        ("", "expected mission_control.certificate_file to hold certificates in PEM form", "BEGIN CERTIFICATE"),
        ("rubbish", "expected mission_control.certificate_file to hold certificates in PEM form", "BEGIN CERTIFICATE"),
    ],
)
def test_a_certificate_file_that_is_no_use_is_refused_at_start(
    loading: Loading, content: str | None, said: str, hint: str
) -> None:
    if content is not None:
        (loading.home / "ca.pem").write_text(content)

    with pytest.raises(ConfigError, match=said) as raised:
        loading("[mission_control]\nurl = 'https://x'\ncertificate_file = '~/ca.pem'\n")

    assert hint in raised.value.hint
    assert raised.value.where.endswith("exporter.toml:3")


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("", "does not begin"),
        ("/var/backups", "does not begin"),
        ("http://x/backups", "does not begin"),
        ("file://var/backups", "names a host"),
        ("file:backups", "no absolute path"),
        ("file:///", "no absolute path"),
        ("file:///a?b", "parameters"),
        ("file:///a#b", "parameters"),
        ("file:///a/../b", "cannot be"),
        ("file:///a/%2e%2e/b", "cannot be"),
        ("file:///a%00b", "cannot be"),
    ],
)
def test_an_archive_that_is_no_directory_is_refused(loading: Loading, url: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=f"a file:// address.*{reason}"):
        loading(flags={"archive.url": url})


def test_an_archive_is_taken_without_slashes_at_its_end(loading: Loading) -> None:
    assert loading(flags={"archive.url": "file:///var/a%20b/"}).settings.archive["default"].url == "file:///var/a%20b"


def test_two_archives_in_one_directory_are_refused(loading: Loading) -> None:
    text = '[archive.a]\nurl = "file:///var/x"\n[archive.b]\nurl = "file://localhost/var/./x"\n'

    with pytest.raises(ConfigError, match="have the same directory"):
        loading(text)


def test_an_archive_below_the_directory_of_the_cli_is_refused(loading: Loading) -> None:
    with pytest.raises(ConfigError, match="where the exporter writes nothing"):
        loading('copilot_home = "/home/me/.copilot"\n[archive]\nurl = "file:///home/me/.copilot/archive"\n')
