"""The one place that imports the program: OTLP bytes of a session, made in a process of its own.

It is run as a script with the checkout under test on PYTHONPATH: `python -P product.py < jobs > cases`. The parts are
found by their names in whatever module of `otel` defines them, so that it runs on the commit before the restructuring
and on those after it. When a part gets another name, add that to `_PARTS`; the earlier name may be deleted after the
restructuring, and so may the search.
"""

import base64
import importlib
import json
import pkgutil
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any, Final

_PARTS: Final[dict[str, tuple[str, ...]]] = {
    "bridge": ("Bridge",),
    "telling": ("Telling", "SignalOptions"),
    "aggregate": ("Aggregate",),
    "stream": ("Stream", "MetricStream"),
    "pack": ("pack",),
    "unpack": ("unpack",),
    "metric": ("metric_bytes",),
    "request": ("request_bytes",),
    "resource": ("resource_bytes",),
    "scope": ("scope_bytes",),
    "service_name": ("SERVICE_NAME",),
    "service_instance": ("SERVICE_INSTANCE_ID",),
}
_CONSTANTS: Final = ("service_name", "service_instance")
_OBSERVED_NS: Final = 1_795_089_600_000_000_000
_POINTS_PER_METRIC: Final = 64
CONTENTS: Final = ("NONE", "METADATA", "REDACTED")
SEMCONVS: Final = ("latest", "legacy", "both")
TEMPORALITIES: Final = ("cumulative", "delta")


def _modules() -> Iterator[ModuleType]:
    package = importlib.import_module("otel")
    yield package
    for found in pkgutil.walk_packages(package.__path__, "otel."):
        yield importlib.import_module(found.name)


def find_parts() -> dict[str, Any]:
    """Return every part; raise LookupError for one that no module defines, or that several do."""
    modules, parts = list(_modules()), {}
    for part, names in _PARTS.items():
        found = {
            id(value): value
            for module in modules
            for name in names
            if (value := vars(module).get(name)) is not None
            and (part in _CONSTANTS or getattr(value, "__module__", None) == module.__name__)
        }
        if len(found) != 1:
            raise LookupError(f"{part}: {len(found)} modules of otel define {' or '.join(names)}; see _PARTS")
        [parts[part]] = found.values()
    parts["content"] = type(parts["telling"]().content)
    return parts


def encode(parts: dict[str, Any], session: str, lines: list[bytes]) -> Iterator[tuple[str, bytes]]:
    """Yield every request body of a session: by content level, spelling, temporality and signal."""
    for content_name in CONTENTS:
        content = parts["content"][content_name]
        for semconv in SEMCONVS:
            bridge = parts["bridge"](session, parts["telling"](("traces", "metrics", "logs"), content, semconv, None))
            records = [bridge.take(lines, _OBSERVED_NS), bridge.process_died(_OBSERVED_NS)]
            attributes = {parts["service_name"]: "golden", parts["service_instance"]: "one"}
            resource = parts["resource"](attributes, content, semconv, {"given": "by hand"})
            scope = parts["scope"]("0")
            case = f"{content_name.lower()}/{semconv}"
            for signal in ("traces", "logs"):
                found = [one for some in records for one in some[signal]]
                yield f"{case}/{signal}", parts["request"](resource, scope, [body for _, _, body in found])
                yield f"{case}/{signal}-ids", json.dumps([[n, id] for n, id, _ in found]).encode()
            measured = [one for some in records for _, _, group in some["metrics"] for one in group]
            packed = parts["pack"](measured)
            yield f"{case}/measured", packed
            for temporality in TEMPORALITIES:
                stream = parts["stream"](temporality=temporality, content=content, semconv=semconv)
                sums = parts["aggregate"](stream)
                sums.add(parts["unpack"](packed))
                yield f"{case}/{temporality}/sums-before", sums.dump()
                metrics: list[bytes] = []
                while answer := sums.points():
                    metrics += [
                        parts["metric"](instrument, points[at : at + _POINTS_PER_METRIC], temporality, content, semconv)
                        for instrument, points in answer
                        for at in range(0, len(points), _POINTS_PER_METRIC)
                    ]
                    sums.accepted()
                yield f"{case}/{temporality}/metrics", parts["request"](resource, scope, metrics)
                yield f"{case}/{temporality}/sums-after", sums.dump()


def main() -> None:
    """Encode the sessions that come in, a JSON object per line, and write a JSON line per case."""
    parts = find_parts()
    for job in sys.stdin:
        asked = json.loads(job)
        lines = [base64.b64decode(line) for line in asked["lines"]]
        for name, content in encode(parts, asked["id"], lines):
            told = {"case": f"{asked['name']}/{name}", "content": base64.b64encode(content).decode()}
            sys.stdout.write(json.dumps(told) + "\n")


if __name__ == "__main__":
    main()
