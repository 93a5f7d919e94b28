"""Group `otlp`: what OTLP endpoints are sent of every capture, encoded in one process and by the program."""

import base64
import json
import subprocess
import sys
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Final

from tests.golden.captures import Capture
from tests.golden.machine import Machine, Work, toml_table
from tests.golden.recorders import otlp_grpc, otlp_http
from tests.golden.store import Goldens

ENCODED, SENT, FOLLOWED = "otlp-encoded", "otlp-sent", "otlp-followed"
_CONTENTS: Final = ("none", "metadata", "redacted")
_SEMCONVS: Final = ("latest", "legacy", "both")
_TEMPORALITIES: Final = ("cumulative", "delta")
_SIGNALS: Final = ("traces", "metrics", "logs")
COMBINATIONS: Final = tuple("-".join(one) for one in product(_CONTENTS, _SEMCONVS, _TEMPORALITIES))
_FOLLOWED_EVERY: Final = 4


def write_encoded(goldens: Goldens, work: Work, captures: Sequence[Capture]) -> None:
    """Keep the request bodies that the encoder makes of every capture."""
    jobs = [
        {"name": one.name, "id": one.id, "lines": [base64.b64encode(line).decode() for line in one.lines()]}
        for one in captures
    ]
    done = subprocess.run(
        [sys.executable, "-P", str(Path(__file__).with_name("product.py"))],
        input="".join(json.dumps(job) + "\n" for job in jobs).encode(),
        env=Machine(work, "encoding").environment(),
        cwd=work.checkout,
        stdout=subprocess.PIPE,
        check=True,
    )
    for line in done.stdout.splitlines():
        told = json.loads(line)
        goldens.put(ENCODED, told["case"], base64.b64decode(told["content"]))


def write_sent(goldens: Goldens, work: Work, captures: Sequence[Capture]) -> None:
    """Keep the requests of a backfill of each capture to an endpoint for every combination of settings.

    A session that is nothing but unreadable lines leads to no request, which is a case too.
    """
    with otlp_http(work.port + 5) as http, otlp_grpc(work.port + 10, len(COMBINATIONS)) as over_grpc:
        tables = "".join(
            toml_table(f"otel.h{number}", {"endpoint": f"http://127.0.0.1:{work.port + 5}/{number}", **_of(one)})
            + toml_table(
                f"otel.g{number}",
                {"endpoint": f"http://127.0.0.1:{work.port + 10 + number}", "protocol": "grpc", **_of(one)},
            )
            for number, one in enumerate(COMBINATIONS)
        )
        for capture in captures:
            machine = Machine(work, "sending")
            machine.configure(tables)
            machine.add([capture])
            done = machine.exporter("backfill", "--all", "--json")
            goldens.put(SENT, f"{capture.name}/answer", b"%d\n%s" % (done.code, done.out))
            by_path: dict[str, list[bytes]] = {}
            for exchange in http.clear():
                _, place, *_, signal = exchange.path.split("/")
                by_path.setdefault(f"http/{place}/{signal}", []).append(_framed(exchange.headers, exchange.body))
            for number, taken in enumerate(over_grpc):
                for method, headers, body in taken:
                    signal = method.rpartition("/")[0].rpartition(".")[2].removesuffix("Service").lower()
                    signal = {"trace": "traces"}.get(signal, signal)
                    by_path.setdefault(f"grpc/{number}/{signal}", []).append(_framed(headers, body))
                taken.clear()
            for protocol, (number, name), signal in product(("http", "grpc"), enumerate(COMBINATIONS), _SIGNALS):
                sent = by_path.pop(f"{protocol}/{number}/{signal}", [])
                goldens.put(SENT, f"{capture.name}/{protocol}/{name}/{signal}", b"\n".join(sent))
            if by_path:
                raise AssertionError(f"requests to addresses that nobody named: {sorted(by_path)}")


def write_followed(goldens: Goldens, work: Work, captures: Sequence[Capture]) -> None:
    """Keep the requests of `run --until-idle` for some captures, each grown in two steps."""
    with otlp_http(work.port + 5) as http:
        for capture in captures[::_FOLLOWED_EVERY]:
            machine = Machine(work, "following")
            endpoint = f"http://127.0.0.1:{work.port + 5}"
            machine.configure(toml_table("otel", {"endpoint": endpoint, "content": "redacted", "semconv": "both"}))
            lines = capture.lines()
            for step, part in enumerate((lines[: len(lines) // 2], lines[len(lines) // 2 :])):
                content = b"".join(line + b"\n" for line in part)
                machine.write_session(capture.id, content, age=20 - step * 10, append=bool(step))
                done = machine.exporter("run", "--until-idle")
                taken = http.clear()
                goldens.put(FOLLOWED, f"{capture.name}/{step}/exit", b"%d" % done.code)
                for signal in _SIGNALS:
                    sent = [_framed(one.headers, one.body) for one in taken if one.path.endswith(signal)]
                    goldens.put(FOLLOWED, f"{capture.name}/{step}/{signal}", b"\n".join(sent))


def _of(combination: str) -> dict[str, str]:
    content, semconv, temporality = combination.split("-")
    return {"content": content, "semconv": semconv, "temporality": temporality}


def _framed(headers: object, body: bytes) -> bytes:
    return json.dumps(headers, sort_keys=True).encode() + b"\n%d\n" % len(body) + body
