"""Checks the given values, one setting after the other, and makes the settings of them.

Then each sink as a whole: settings that exclude each other, and whether a secret may be sent to its address.
"""

import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from config.errors import ConfigError
from config.fields import Field, Kind, SettingsTable, Sinks, fields, members
from config.given.layer import Given, Layer, unknown
from config.given.toml import written
from config.paths import Places, homes_of
from config.proxy import proxy_fault
from config.reading import read_regular
from config.settings import Metrics, MissionControl, Otel, Settings, Source
from config.source import AhpAddress, RpcAddress, address_of, check_source
from config.token import headers_fault, read_headers, read_token, token_fault
from config.url import fault, file_fault, has_credentials, is_loopback, is_unencrypted, listen_fault, mask_url, path_of

_SHOWN_LENGTH_MAX = 80
_ADDRESSES: dict[str, tuple[str, Callable[[str], str]]] = {
    "http": ("an http:// or https:// address", fault),
    "file": ("a file:// address", file_fault),
    "listen": ("an address to listen on, HOST:PORT", listen_fault),
    "proxy": ('"env", "none" or an http:// or https:// address', proxy_fault),
}
_AS_TEXT: dict[Kind, str] = {
    "texts": 'in the file ["one", "two"], in a variable one,two',
    "pairs": 'in the file { name = "value" }, in a variable name=value,name=value',
    "tables": "in a variable these are JSON",
}


def checked(given: Layer, places: Places) -> Settings:
    """The settings, or a ConfigError about the first that is wrong."""
    values: dict[str, Any] = {}
    for name, member in members(Settings).items():
        match member:
            case Field():
                if (name,) in given:
                    values[name] = _value(member, given[(name,)], places)
            case SettingsTable():
                values[name] = _table(member, {path[1:]: one for path, one in given.items() if path[0] == name}, places)
            case Sinks():
                values[name] = _sinks(member, given, places)
    settings = Settings(**values)
    _check_archives(settings, given)
    _check_metrics(settings.metrics, given)
    return settings


def _table(table: SettingsTable, given: Layer, places: Places) -> msgspec.Struct:
    """A table of settings with the tables in it."""
    own = {path[0]: one for path, one in given.items() if len(path) == 1}
    values = _values(table, own, places)
    for name, member in members(table.struct).items():
        if isinstance(member, SettingsTable):
            values[name] = _table(member, {path[1:]: one for path, one in given.items() if path[0] == name}, places)
    made = table.struct(**values)
    _check_one_of_two(made, own)
    return made


def _check_metrics(metrics: Metrics, given: Layer) -> None:
    """Who is in the network may not read the metrics unless the settings say so."""
    if metrics.listen is None or is_loopback(f"http://{metrics.listen}") or metrics.token_file or metrics.allow_open:
        return
    one = given["metrics", "listen"]
    raise one.error(
        f"{one.key} is not on loopback, so anybody in the network could read the metrics",
        "set metrics.token_file to a file with a token, or metrics.allow_open = true",
    )


def _check_archives(settings: Settings, given: Layer) -> None:
    """Two sinks in one directory would write over each other, and nothing is written below the CLI's own."""
    seen: dict[Path, str] = {}
    for name, archive in settings.archive.items():
        path, where = path_of(archive.url), given["archive", name, "url"].where
        if path in seen:
            message = f"archive.{name} and archive.{seen[path]} have the same directory"
            raise ConfigError(message, hint="give each its own", where=where, key=f"archive.{name}.url")
        below = next((one for one in homes_of(settings) if _is_below(path, one)), None)
        if below is not None:
            message = f"archive.{name} is below {below}, where the exporter writes nothing"
            raise ConfigError(message, hint="name another directory", where=where, key=f"archive.{name}.url")
        seen[path] = name


def _is_below(path: Path, home: str) -> bool:
    return any(one == Path(home) or one.match(home) for one in (path, *path.parents))


def _sinks(group: Sinks, given: Layer, places: Places) -> dict[str, msgspec.Struct]:
    sinks: dict[str, msgspec.Struct] = {}
    for name in sorted({path[1] for path in given if path[0] == group.name}):
        found = {path[2]: one for path, one in given.items() if path[:2] == (group.name, name) and len(path) == 3}
        values = _values(group, found, places)
        for field in fields(group.struct).values():
            if field.required and field.name not in values:
                raise _missing(group, name, field, given)
        sinks[name] = group.struct(**values)
        check_sink(sinks[name], found)
    return sinks


def _values(table: SettingsTable | Sinks, found: Mapping[str, Given], places: Places) -> dict[str, object]:
    known = fields(table.struct)
    return {name: _value(known[name], given, places) for name, given in found.items()}


def _missing(group: Sinks, name: str, field: Field, given: Layer) -> ConfigError:
    one = next(one for path, one in given.items() if path[:2] == (group.name, name))
    others = sorted({path[1] for path in given if path[0] == group.name} - {name})
    return ConfigError(
        f"{group.name}.{name} has no {field.name}",
        hint=f"there is also {group.name}.{others[0]}; was that meant?" if others else f"set its {field.name} too",
        where=one.where,
        key=f"{group.name}.{name}.{field.name}",
    )


def _value(field: Field, given: Given, places: Places) -> object:
    if field.kind == "tables":
        return _tables(field, given, places)
    try:
        value = msgspec.convert(given.value, field.type)
    except msgspec.ValidationError:
        raise _wrong(field, given) from None
    if field.address:
        reason = _ADDRESSES[field.address][1](value)
        if reason:
            raise _wrong(field, given, reason)
        return value.rstrip("/")
    if field.many and not value:
        raise _wrong(field, given, "there is none in it")
    if field.path and value is not None:
        return _absolute(value, given, places)
    return value


def _absolute(value: str | tuple[str, ...], given: Given, places: Places) -> object:
    if isinstance(value, str):
        return places.absolute(value, given)
    return tuple(places.absolute(one, given.element(index, one)) for index, one in enumerate(value))


def _tables(field: Field, given: Given, places: Places) -> object:
    """An array of tables."""
    assert field.tables_of is not None
    if not isinstance(given.value, list | tuple) or not all(isinstance(table, Mapping) for table in given.value):
        raise _wrong(field, given)
    known = fields(field.tables_of)
    made: list[object] = []
    for index, table in enumerate(given.value):
        for name in table:
            if name not in known:
                element = given.element(index, None, name)
                raise unknown(element.key, known, where=element.where)
        if field.tables_of is Source:
            made.append(_source(known, given, index, table, places))
            continue
        if len(table) != 1:
            message = f"expected each {given.key} to have one of {', '.join(known)}, given {len(table)} of them"
            raise given.element(index, table).error(message)
        ((name, value),) = table.items()
        made.append(_entry(field.tables_of, name, given.element(index, value, name)))
    return tuple(made)


def _source(
    known: Mapping[str, Field], given: Given, index: int, table: Mapping[str, object], places: Places
) -> Source:
    """A source whose address is checked and has no parameters; those are in its other settings."""

    def value(name: str, held: object) -> Any:
        return _value(known[name], given.element(index, held, name), places)

    url = given.element(index, None, "url")
    if "url" not in table:
        raise url.error(f"expected each {given.key} to have a url")
    source = Source(**{name: value(name, held) for name, held in table.items()})
    try:
        address = address_of(source)
        check_source(address, source)
    except ValueError as error:
        raise url.error(f"{url.key}: {error}") from None
    if isinstance(address, RpcAddress | AhpAddress):
        file = value("token_file", address.token_file) if address.token_file else None
        source = Source(url=address.name, token_file=file, push=source.push)
    return source


def _entry(struct: type[msgspec.Struct], name: str, given: Given) -> object:
    key, value = given.key, given.value
    if not isinstance(value, str) or not value:
        raise given.error(f"expected {key} to be a text that is not empty, given {_shown(value)}")
    if name == "regex":
        _check_regex(value, given)
    if name == "path" and not value.strip("*?/."):
        raise given.error(f"expected {key} to name some files, given one that names every file")
    return struct(**{name: value})


def _check_regex(pattern: str, given: Given) -> None:
    try:
        compiled = re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise given.error(f"expected {given.key} to be a regular expression: {error}") from None
    if compiled.search("") is not None:
        raise given.error(
            f"expected {given.key} to match some text, given one that matches the empty text and so everything"
        )


def _wrong(field: Field, given: Given, reason: str = "") -> ConfigError:
    expected = _ADDRESSES[field.address][0] if field.address else field.expected
    shown = "another value" if field.secret else _shown(given.value, url=field.address in ("http", "proxy"))
    message = f"expected {given.key} to be {expected}, given {shown}" + (f": {reason}" if reason else "")
    hint = _AS_TEXT.get(field.kind, "") if isinstance(given.value, str) else ""
    return given.error(message, hint)


def _shown(value: object, *, url: bool = False) -> str:
    """A value in an error message: short, and without the credentials of an address."""
    if isinstance(value, str) and url and "://" not in value:
        return "a text that is none"  # perhaps a token in the wrong place
    if isinstance(value, str):
        text = written(mask_url(value) if url else value)
        return text if len(text) <= _SHOWN_LENGTH_MAX else f'{text[:_SHOWN_LENGTH_MAX]}…"'
    if isinstance(value, bool | int | float):
        return written(value)
    names: dict[type, str] = {list: "an array", tuple: "an array", dict: "a table"}
    return names.get(type(value), "another value")


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
        fault, given = token_fault(sink.token), found["token"]
        if fault:
            raise given.error(f"expected {given.key} to be a token, {fault}")


def _check_certificate(sink: MissionControl, found: Mapping[str, Given]) -> None:
    """Report an unusable certificate file at start; with it every request would fail."""
    if sink.certificate_file is None:
        return
    import ssl  # takes milliseconds, which only this setting needs

    given = found["certificate_file"]
    try:
        read_regular(sink.certificate_file)
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
        fault, given = headers_fault(sink.headers), found["headers"]
        if fault:
            raise given.error(f"expected {given.key} to be headers, {fault}")


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


def check_secret_files(settings: Settings, given: Layer) -> None:
    """Read every file of secrets once, so that an unusable one is reported at start, with the place that names it."""
    for name, sink in settings.mission_control.items():
        _check_secret_file(partial(read_token, sink), given.get(("mission_control", name, "token_file")))
    for name, otel in settings.otel.items():
        _check_secret_file(partial(read_headers, otel), given.get(("otel", name, "headers_file")))
    _check_secret_file(partial(read_token, settings.metrics), given.get(("metrics", "token_file")))
    for index, source in enumerate(settings.source):
        _check_secret_file(partial(read_token, source), given["source",].element(index, None, "token_file"))


def _check_secret_file(read: Callable[[], object], given: Given | None) -> None:
    try:
        read()
    except ConfigError as error:
        assert given is not None, "a file that is read was named"
        raise given.error(f"{error.message} ({error.where})", error.hint) from None


def _first(found: Mapping[str, Given], *names: str) -> Given | None:
    return next((found[name] for name in names if name in found), None)
