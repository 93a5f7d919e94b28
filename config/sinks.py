"""Checks of a sink as a whole: settings that exclude each other, and whether a secret may be sent to its address."""

from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from config.errors import ConfigError
from config.fields import fields
from config.given.layer import Given
from config.settings import MissionControl, Otel
from config.token import headers_fault, read_headers, read_token, token_fault
from config.url import has_credentials, is_unencrypted


def check_sink(sink: msgspec.Struct, found: Mapping[str, Given]) -> None:
    """Raise ConfigError if the settings of this sink contradict each other; `found` holds where each was given."""
    _check_one_of_two(sink, found)
    match sink:
        case MissionControl():
            _check_token(sink, found)
            _check_certificate(sink, found)
            _check_transport(sink.url, found["url"], sink.allow_http, secret=_first(found, "token", "token_file"))
        case Otel():
            _check_headers(sink, found)
            _check_transport(
                sink.endpoint, found["endpoint"], sink.allow_http, secret=_first(found, "headers", "headers_file")
            )
            _check_otel(sink, found)


def _check_one_of_two(sink: msgspec.Struct, found: Mapping[str, Given]) -> None:
    for name, given in found.items():
        other = fields(type(sink))[name].instead_of
        if other in found:
            hint = f"remove one; {other} is at {found[other].where}"
            raise given.error(f"expected one of {given.key} and {other}, given both", hint)


def _check_token(sink: MissionControl, found: Mapping[str, Given]) -> None:
    if sink.token is not None:
        fault = token_fault(sink.token)
        if fault:
            given = found["token"]
            raise given.error(f"expected {given.key} to be a token, {fault}")
    if sink.token_file is not None:
        check_secret_file(lambda: read_token(sink), found["token_file"])


def _check_certificate(sink: MissionControl, found: Mapping[str, Given]) -> None:
    """Report an unusable certificate file at start; with it every request would fail."""
    if sink.certificate_file is None:
        return
    import ssl  # takes milliseconds, which only this setting needs

    given = found["certificate_file"]
    try:
        Path(sink.certificate_file).read_bytes()
        ssl.create_default_context(cafile=sink.certificate_file)
    except ssl.SSLError:
        message = f"expected {given.key} to hold certificates in PEM form, given something else"
        hint = f"{sink.certificate_file} has to begin with -----BEGIN CERTIFICATE-----"
    except OSError as error:
        message = f"{given.key} cannot be read: {error.strerror} ({sink.certificate_file})"
        hint = "check that the file is there and that you may read it"
    else:
        return
    raise given.error(message, hint)


def _check_headers(sink: Otel, found: Mapping[str, Given]) -> None:
    if sink.headers:
        fault = headers_fault(sink.headers)
        if fault:
            given = found["headers"]
            raise given.error(f"expected {given.key} to be headers, {fault}")
    if sink.headers_file is not None:
        check_secret_file(lambda: read_headers(sink), found["headers_file"])


def _check_transport(address: str, given: Given, allow_http: bool, *, secret: Given | None) -> None:
    """A secret is sent over http:// only to this machine, unless the settings allow it."""
    if allow_http or not is_unencrypted(address) or not (secret or has_credentials(address)):
        return
    what = secret.key if secret else "the password in it"
    raise given.error(
        f"{given.key} is an http:// address that is not loopback, so anybody on the way could read {what}",
        "use https://, or, if the network is yours, put the sink into the settings file with allow_http = true",
    )


def _check_otel(sink: Otel, found: Mapping[str, Given]) -> None:
    if not sink.append_path and len(sink.signals) != 1:
        given = found["append_path"]
        message = f"expected one of the signals beside {given.key} = false, given {len(sink.signals)}"
        raise given.error(message, 'for example signals = ["traces"]')
    one = _first(found, "client_certificate_file", "client_key_file")
    if one and (sink.client_certificate_file is None or sink.client_key_file is None):
        raise one.error("expected client_certificate_file and client_key_file together, given one of them")


def check_secret_file(read: Callable[[], object], given: Given) -> None:
    """Read a file of secrets once, so that an unusable one is reported at start, with the place that names it."""
    try:
        read()
    except ConfigError as error:
        raise given.error(f"{error.message} ({error.where})", error.hint) from None


def _first(found: Mapping[str, Given], *names: str) -> Given | None:
    return next((found[name] for name in names if name in found), None)
