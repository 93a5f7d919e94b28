"""Environment variables of the CLI and of OpenTelemetry, used if no setting of ours is given.

A family of variables is used as a whole or not at all, so that its secrets are sent only to its own address. If any
setting of ours concerns that kind of sink, the family is not used.
"""

from collections.abc import Collection, Iterable, Mapping

from config.errors import ConfigError
from config.fields import Field, fields
from config.given.layer import DEFAULT_SINK, Given, Layer
from config.given.text import from_text
from config.settings import MissionControl, Otel

_MC_ADDRESS = "COPILOT_MC_BASE_URL"
_MC = (_MC_ADDRESS, "COPILOT_MC_ACCESS_TOKEN", "COPILOT_MC_REPO_IDS")

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


def found_in(environ: Mapping[str, str]) -> list[str]:
    """The names of all variables of both families that are set."""
    otel = sorted(name for name in environ if name.startswith(_OTLP))
    names = (*_MC, *otel, _SERVICE_NAME, _RESOURCE, _CONTENT)
    return [name for name in names if environ.get(name)]


def read_fallbacks(environ: Mapping[str, str], given: Layer) -> tuple[Layer, set[str]]:
    """The layer of both families, and the names of the variables that were used; `given` are our own settings."""
    said = {path[0] for path in given}
    layer: Layer = {}
    used: set[str] = set()
    if "mission_control" not in said:
        layer |= _mission_control(environ, used)
    if "otel" not in said:
        layer |= _otel(environ, used)
    return layer, used


def _mission_control(environ: Mapping[str, str], used: set[str]) -> Layer:
    if not environ.get(_MC_ADDRESS):
        return {}
    family = _Family(environ, used)
    sink = ("mission_control", DEFAULT_SINK)
    known = fields(MissionControl)
    layer: Layer = {}
    for name, variable in (("url", _MC_ADDRESS), ("token", "COPILOT_MC_ACCESS_TOKEN")):
        layer |= family.give(sink, known[name], (variable,))
    ids = environ.get("COPILOT_MC_REPO_IDS", "")
    if ids:
        owner, comma, repo = (part.strip() for part in ids.partition(","))
        if not (owner and comma and repo) or "," in repo:
            where = "COPILOT_MC_REPO_IDS"
            raise ConfigError(f'expected OWNER_ID,REPO_ID, given "{ids}"', where=where, key=where)
        layer[(*sink, "owner_id")] = family.given("COPILOT_MC_REPO_IDS", owner)
        layer[(*sink, "repo_id")] = family.given("COPILOT_MC_REPO_IDS", repo)
    return layer


def _otel(environ: Mapping[str, str], used: set[str]) -> Layer:
    """One sink for the common endpoint, and one for each signal with an endpoint or another setting of its own."""
    layer: Layer = {}
    common: list[str] = []
    for signal in _SIGNALS:
        infix = f"{signal.upper()}_"
        has_own = any(environ.get(f"{_OTLP}{infix}{suffix}") for suffix in ("PROTOCOL", *_OF_OTLP))
        if environ.get(f"{_OTLP}{infix}ENDPOINT") or (has_own and environ.get(f"{_OTLP}ENDPOINT")):
            layer |= _otel_sink(environ, used, (signal,), infix)
        else:
            common.append(signal)
    if environ.get(f"{_OTLP}ENDPOINT") and common:
        layer |= _otel_sink(environ, used, common, "")
    return layer


def _otel_sink(environ: Mapping[str, str], used: set[str], signals: Collection[str], infix: str) -> Layer:
    family = _Family(environ, used)
    known = fields(Otel)
    sink = ("otel", infix.rstrip("_").lower() or DEFAULT_SINK)
    layer: Layer = _endpoint(family, sink, infix)
    address = layer[(*sink, "endpoint")]
    layer[(*sink, "signals")] = Given(list(signals), address.origin, address.where, address.key)
    for suffix, name in _OF_OTLP.items():
        layer |= family.give(sink, known[name], (f"{_OTLP}{infix}{suffix}", f"{_OTLP}{suffix}"))
    layer |= family.give(sink, known["service_name"], (_SERVICE_NAME,))
    layer |= family.give(sink, known["resource_attributes"], (_RESOURCE,))
    timeout = layer.get((*sink, "timeout_seconds"))
    if timeout and isinstance(timeout.value, float):
        layer[(*sink, "timeout_seconds")] = family.given(timeout.where, timeout.value / 1000)  # given in milliseconds
    temporality = family.first((_TEMPORALITY,)) if "metrics" in signals else None
    if temporality:
        value = str(temporality.value).lower().replace("lowmemory", "cumulative")
        layer[(*sink, "temporality")] = family.given(_TEMPORALITY, value)
    if environ.get(_CONTENT, "").strip().lower() == "true":
        layer[(*sink, "content")] = family.given(_CONTENT, "redacted")
    return layer


def _endpoint(family: "_Family", sink: tuple[str, str], infix: str) -> Layer:
    """The address and the protocol; over HTTP the address of a single signal is complete, and its end is split off."""
    layer: Layer = {}
    protocol = family.first((f"{_OTLP}{infix}PROTOCOL", f"{_OTLP}PROTOCOL"))
    is_grpc = False
    if protocol:
        # The CLI's own default is http/json; every OTLP/HTTP receiver takes protobuf at the same address.
        value = str(protocol.value).replace("http/json", "http/protobuf")
        is_grpc = value == "grpc"
        layer[(*sink, "protocol")] = family.given(protocol.where, value)
    own = family.first((f"{_OTLP}{infix}ENDPOINT",))
    address = own or family.first((f"{_OTLP}ENDPOINT",))
    assert address is not None, "a sink is only made for an address"
    url = str(address.value)
    if is_grpc and "://" not in url:
        insecure = family.first((f"{_OTLP}{infix}INSECURE", f"{_OTLP}INSECURE"))
        url = f"http://{url}" if insecure and str(insecure.value).lower() == "true" else f"https://{url}"
    if infix and own and not is_grpc:
        tail = f"/v1/{sink[1]}"
        layer[(*sink, "append_path")] = family.given(address.where, url.rstrip("/").endswith(tail))
        url = url.rstrip("/").removesuffix(tail)
    layer[(*sink, "endpoint")] = family.given(address.where, url)
    return layer


class _Family:
    """The variables of one family, and which of them were used."""

    def __init__(self, environ: Mapping[str, str], used: set[str]) -> None:
        self._environ = environ
        self._used = used

    def first(self, variables: Iterable[str]) -> Given | None:
        """The first of these variables that is set."""
        for variable in variables:
            if self._environ.get(variable):
                return self.given(variable, self._environ[variable].strip())
        return None

    def give(self, sink: tuple[str, str], field: Field, variables: Iterable[str]) -> Layer:
        """The setting, if one of these variables is set."""
        found = self.first(variables)
        if found is None:
            return {}
        return {(*sink, field.name): self.given(found.where, from_text(field, str(found.value)))}

    def given(self, variable: str, value: object) -> Given:
        """The value of this variable, which is used now."""
        self._used.add(variable)
        return Given(value, f"fallback {variable}", variable, variable)
