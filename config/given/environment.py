"""Settings in environment variables: EXPORTER_, then the setting's path in capitals joined by two underscores.

Variables of the CLI and of OpenTelemetry are fallbacks, used if no setting of ours is given. A family of them is used
as a whole or not at all, so that its secrets are sent only to its own address. If any setting of ours concerns that
kind of sink, the family is not used.
"""

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from urllib.parse import unquote

from config.errors import ConfigError, nearest
from config.fields import Field, Kind, SettingsTable, Sinks, fields, leaves, members
from config.given.layer import DEFAULT_SINK, Given, Layer, SettingPath, check_sink_name, unknown
from config.settings import MissionControl, Otel, Settings

PREFIX = "EXPORTER_"
_JOINT = "__"
_INTEGER = re.compile(r"[+-]?[0-9]{1,30}")
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_TRUTH = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}
_MC = ("COPILOT_MC_BASE_URL", "COPILOT_MC_ACCESS_TOKEN", "COPILOT_MC_REPO_IDS")
_OTLP = "OTEL_EXPORTER_OTLP_"
_SERVICE_NAME = "OTEL_SERVICE_NAME"
_RESOURCE = "OTEL_RESOURCE_ATTRIBUTES"
_CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_TEMPORALITY = f"{_OTLP}METRICS_TEMPORALITY_PREFERENCE"
_SIGNALS = ("traces", "metrics", "logs")
_OF_OTLP = {
    "HEADERS": "headers",
    "TIMEOUT": "timeout_seconds",
    "COMPRESSION": "compression",
    "CERTIFICATE": "certificate_file",
    "CLIENT_CERTIFICATE": "client_certificate_file",
    "CLIENT_KEY": "client_key_file",
}


def from_text(field: Field, text: str) -> object:
    """The value that the text has for this field; an invalid text itself, which the check refuses."""
    if field.kind == "text":
        return _json(text) if field.many and text.startswith("[") else text
    return _READERS[field.kind](text.strip())


def pairs(text: str) -> object:
    """The pairs of `name=value,name=value`, perhaps percent-encoded, as in OTEL_EXPORTER_OTLP_HEADERS.

    An invalid text itself.
    """
    found: dict[str, str] = {}
    for part in text.replace("\n", ",").split(","):
        name, equals, value = part.partition("=")
        if part.strip() and not (equals and name.strip()):
            return text
        if part.strip():
            found[unquote(name.strip())] = unquote(value.strip())
    return found


def _texts(text: str) -> object:
    return _json(text) if text.startswith("[") else [part.strip() for part in text.split(",") if part.strip()]


def _json(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


_READERS: dict[Kind, Callable[[str], object]] = {
    "integer": lambda text: int(text) if _INTEGER.fullmatch(text) else text,
    "number": lambda text: float(text) if _NUMBER.fullmatch(text) else text,
    "truth": lambda text: _TRUTH.get(text.lower(), text),
    "texts": _texts,
    "pairs": lambda text: _json(text) if text.startswith("{") else pairs(text),
    "tables": _json,
}


def read_environment(environ: Mapping[str, str], lower: Iterable[SettingPath]) -> tuple[Layer, list[str]]:
    """The layer of the variables, and a note for each that only looks like a setting; an empty variable is not set.

    `lower` are the paths of the file: a variable cannot be named `my-team`, so MY_TEAM means that sink of the file.
    """
    layer: Layer = {}
    notes: list[str] = []
    named = {path[:2] for path in lower if len(path) > 1}
    for variable in sorted(name for name in environ if name.startswith(PREFIX)):
        parts = variable.removeprefix(PREFIX).lower().split(_JOINT)
        match members(Settings).get(parts[0]) if variable.isupper() else None:
            case Field() as member if len(parts) == 1:
                path: SettingPath = (member.name,)
            case SettingsTable() as table if len(parts) > 1:
                path, member = _in_table(table, parts, variable)
            case Sinks() as group if len(parts) > 1:
                path, member = _in_sinks(group, parts, variable, named)
            case _:
                notes.append(_note(variable))
                continue
        if environ[variable]:
            value = from_text(member, environ[variable])
            layer[path] = Given(value, f"environment {variable}", variable, ".".join(parts))
    return layer, notes


def variable_of(path: SettingPath) -> str:
    """The variable of the setting at this path."""
    parts = path[:1] + path[2:] if path[1:2] == (DEFAULT_SINK,) else path
    return PREFIX + _JOINT.join(parts).upper().replace("-", "_")


def _in_table(table: SettingsTable, parts: list[str], variable: str) -> tuple[SettingPath, Field]:
    known, below = leaves(table.struct), tuple(parts[1:])
    if below not in known:
        raise _unknown(variable, [one[-1] for one in known if one[:-1] == below[:-1]] or map(_JOINT.join, known))
    return (table.name, *below), known[below]


def _in_sinks(group: Sinks, parts: list[str], variable: str, named: set[SettingPath]) -> tuple[SettingPath, Field]:
    known = fields(group.struct)
    if parts[-1] not in known:
        raise _unknown(variable, known)
    name = _JOINT.join(parts[1:-1]) if len(parts) > 2 else DEFAULT_SINK
    check_sink_name(group, name, where=variable)
    alike = [path[1] for path in named if path[0] == group.name and path[1].replace("-", "_") == name]
    if len(alike) > 1 and name not in alike:
        raise ConfigError(f"this may mean {' or '.join(sorted(alike))}", where=variable, key=f"{group.name}.{name}")
    if alike and name not in alike:
        name = alike[0]
    return (group.name, name, parts[-1]), known[parts[-1]]


def _unknown(variable: str, known: Iterable[str]) -> ConfigError:
    prefix = variable.rpartition(_JOINT)[0] + _JOINT
    return unknown(variable, [name.upper() for name in known], where=variable, prefix=prefix)


def _note(variable: str) -> str:
    table, joint, rest = variable.partition(_JOINT)
    named = members(Settings).items()
    guess = nearest(table, [variable_of((name,)) for name, member in named if isinstance(member, Field) != bool(joint)])
    guess = guess.replace("?", f"{joint}{rest}?")
    return f"{variable} is not a setting" + (f"; {guess}" if guess else "")


def found_in(environ: Mapping[str, str]) -> list[str]:
    """The names of all variables of both families that are set."""
    otel = sorted(name for name in environ if name.startswith(_OTLP))
    names = (*_MC, *otel, _SERVICE_NAME, _RESOURCE, _CONTENT)
    return [name for name in names if environ.get(name)]


def read_fallbacks(environ: Mapping[str, str], given: Layer) -> tuple[Layer, set[str]]:
    """The layer of both families, and the names of the variables that were used; `given` are our own settings."""
    said = {path[0] for path in given}
    variables = _Variables(environ)
    layer: Layer = {}
    if "mission_control" not in said:
        layer |= _mission_control(variables)
    if "otel" not in said:
        layer |= _otel(variables)
    return layer, variables.used


class _Variables:
    """The variables of other programs, and which of them were used."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.environ = environ
        self.used: set[str] = set()

    def first(self, *variables: str) -> Given | None:
        """The first of these variables that is set."""
        found = next((variable for variable in variables if self.environ.get(variable)), None)
        return self.given(found, self.environ[found].strip()) if found else None

    def give(self, sink: tuple[str, str], field: Field, *variables: str) -> Layer:
        """The setting, if one of these variables is set."""
        found = self.first(*variables)
        return {(*sink, field.name): self.given(found.where, from_text(field, str(found.value)))} if found else {}

    def given(self, variable: str, value: object) -> Given:
        """The value of this variable, which is used now."""
        self.used.add(variable)
        return Given(value, f"fallback {variable}", variable, variable)


def _mission_control(variables: _Variables) -> Layer:
    address, token, ids = _MC
    if not variables.environ.get(address):
        return {}
    sink, known = ("mission_control", DEFAULT_SINK), fields(MissionControl)
    layer = variables.give(sink, known["url"], address) | variables.give(sink, known["token"], token)
    given = variables.environ.get(ids, "")
    if given:
        owner, comma, repo = (part.strip() for part in given.partition(","))
        if not (owner and comma and repo) or "," in repo:
            raise ConfigError(f'expected OWNER_ID,REPO_ID, given "{given}"', where=ids, key=ids)
        layer[(*sink, "owner_id")] = variables.given(ids, owner)
        layer[(*sink, "repo_id")] = variables.given(ids, repo)
    return layer


def _otel(variables: _Variables) -> Layer:
    """One sink for the common endpoint, and one for each signal with an endpoint or another setting of its own."""
    environ = variables.environ
    layer: Layer = {}
    common: list[str] = []
    for signal in _SIGNALS:
        infix = f"{signal.upper()}_"
        has_own = any(environ.get(f"{_OTLP}{infix}{suffix}") for suffix in ("PROTOCOL", *_OF_OTLP))
        if environ.get(f"{_OTLP}{infix}ENDPOINT") or (has_own and environ.get(f"{_OTLP}ENDPOINT")):
            layer |= _otel_sink(variables, (signal,), infix)
        else:
            common.append(signal)
    if environ.get(f"{_OTLP}ENDPOINT") and common:
        layer |= _otel_sink(variables, common, "")
    return layer


def _otel_sink(variables: _Variables, signals: Collection[str], infix: str) -> Layer:
    known = fields(Otel)
    sink = ("otel", infix.rstrip("_").lower() or DEFAULT_SINK)
    layer: Layer = _endpoint(variables, sink, infix)
    address = layer[(*sink, "endpoint")]
    layer[(*sink, "signals")] = Given(list(signals), address.origin, address.where, address.key)
    for suffix, name in _OF_OTLP.items():
        layer |= variables.give(sink, known[name], f"{_OTLP}{infix}{suffix}", f"{_OTLP}{suffix}")
    layer |= variables.give(sink, known["service_name"], _SERVICE_NAME)
    layer |= variables.give(sink, known["resource_attributes"], _RESOURCE)
    timeout = layer.get((*sink, "timeout_seconds"))
    if timeout and isinstance(timeout.value, float):  # given in milliseconds
        layer[(*sink, "timeout_seconds")] = variables.given(timeout.where, timeout.value / 1000)
    temporality = variables.first(_TEMPORALITY) if "metrics" in signals else None
    if temporality:
        value = str(temporality.value).lower().replace("lowmemory", "cumulative")
        layer[(*sink, "temporality")] = variables.given(_TEMPORALITY, value)
    if variables.environ.get(_CONTENT, "").strip().lower() == "true":
        layer[(*sink, "content")] = variables.given(_CONTENT, "redacted")
    return layer


def _endpoint(variables: _Variables, sink: tuple[str, str], infix: str) -> Layer:
    """The address and the protocol; over HTTP the address of a single signal is complete, and its end is split off."""
    layer: Layer = {}
    protocol = variables.first(f"{_OTLP}{infix}PROTOCOL", f"{_OTLP}PROTOCOL")
    is_grpc = False
    if protocol:
        # The CLI's own default is http/json; every OTLP/HTTP receiver takes protobuf at the same address.
        value = str(protocol.value).replace("http/json", "http/protobuf")
        is_grpc = value == "grpc"
        layer[(*sink, "protocol")] = variables.given(protocol.where, value)
    own = variables.first(f"{_OTLP}{infix}ENDPOINT")
    address = own or variables.first(f"{_OTLP}ENDPOINT")
    assert address is not None, "a sink is only made for an address"
    url = str(address.value)
    if is_grpc and "://" not in url:
        insecure = variables.first(f"{_OTLP}{infix}INSECURE", f"{_OTLP}INSECURE")
        url = f"http://{url}" if insecure and str(insecure.value).lower() == "true" else f"https://{url}"
    if infix and own and not is_grpc:
        tail = f"/v1/{sink[1]}"
        layer[(*sink, "append_path")] = variables.given(address.where, url.rstrip("/").endswith(tail))
        url = url.rstrip("/").removesuffix(tail)
    layer[(*sink, "endpoint")] = variables.given(address.where, url)
    return layer
