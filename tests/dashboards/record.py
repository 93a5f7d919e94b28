"""Records what a real Tempo or Loki answers to the queries of the dashboards about the made-up session.

python -m tests.dashboards.record tempo|loki cli|latest RECEIVER ADDRESS

RECEIVER takes OTLP (http://127.0.0.1:4318; for Loki http://127.0.0.1:3100/otlp), ADDRESS is asked. The store has the
settings of `deploy/` and is empty. The answers are what the tests compare their own evaluation with
(`tests/dashboards/test_answers.py`); neither program is in CI.
"""

import json
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final, get_args

import httpx

from otel.encode.records import request_bytes, resource_bytes, scope_bytes
from otel.names import SERVICE_NAME, Content, Semconv
from tests.dashboards.boards import asked, filled
from tests.dashboards.subset import LEVEL, SERVICE
from tests.dashboards.troubled import told
from tests.otel.bodies import log_bytes, span_bytes

ANSWERS: Final = Path(__file__).parent / "answers"
BY_ID: Final = "$trace"
"""The query of a trace by its id, which is no search."""
_SETTLE_SECONDS: Final = 20
_SPANS_MAX: Final = 100


def answers_of(store: str, semconv: Semconv) -> dict[str, Any]:
    """The answers of a store, by query."""
    read: dict[str, Any] = json.loads((ANSWERS / f"{store}-{semconv}.json").read_text(encoding="utf-8"))
    return read


def _tempo(address: str, query: str, begins: int, ends: int) -> dict[str, Any]:
    """The spans that a search finds, by id, with what Tempo says of each."""
    limits = {"limit": 200, "spss": _SPANS_MAX, "start": begins, "end": ends}
    found: dict[str, Any] = {}
    for trace in _get(address, "/api/search", q=query, **limits).get("traces", []):
        for span in (one for each in trace["spanSets"] for one in each["spans"]):
            said = {pair["key"]: _value(pair["value"]) for pair in span.get("attributes", [])}
            named = {"name": span["name"]} if "name" in span else {}
            found[span["spanID"]] = named | dict(sorted(said.items()))
    return dict(sorted(found.items()))


def _value(written: dict[str, Any]) -> object:
    ((kind, value),) = written.items()
    return int(value) if kind == "intValue" else value


def _loki(address: str, query: str, begins: int, ends: int) -> object:
    """The lines that a query finds, oldest first; the number, if it is one that counts."""
    if query.startswith("count"):
        answer = _get(address, "/loki/api/v1/query", query=query, time=ends)
        return [value for series in answer["data"]["result"] for value in series["value"][1:]]
    span: dict[str, str | int] = {"start": begins * 10**9, "end": ends * 10**9, "limit": 5000, "direction": "forward"}
    answer = _get(address, "/loki/api/v1/query_range", query=query, **span)
    lines = [(moment, line) for stream in answer["data"]["result"] for moment, line in stream["values"]]
    return [line for _, line in sorted(lines)]


def _get(address: str, path: str, **asks: str | int) -> Any:
    answer = httpx.get(address + path, params=asks, timeout=60)
    if answer.status_code != 200:
        raise SystemExit(f"{asks}: {answer.status_code} {answer.text[:500]}")
    return answer.json()


def _send(url: str, records: Iterable[bytes], semconv: Semconv) -> None:
    resource = resource_bytes({SERVICE_NAME: SERVICE}, Content.NONE, semconv)
    body = request_bytes(resource, scope_bytes("1"), records)
    answer = httpx.post(url, content=body, headers={"content-type": "application/x-protobuf"}, timeout=60)
    answer.raise_for_status()


def main(store: str, semconv: Semconv, receiver: str, address: str) -> None:
    """Send the session, ask everything, write the answers."""
    happened = told(semconv)
    begins = min(span.start_ns for span in happened.spans) // 10**9 - 60
    ends = max(span.end_ns for span in happened.spans) // 10**9 + 60
    ask: Callable[[str, str, int, int], object]
    if store == "tempo":
        _send(f"{receiver}/v1/traces", [span_bytes(span, LEVEL, semconv) for span in happened.spans], semconv)
        ask = _tempo
    else:
        now = time.time_ns()
        _send(f"{receiver}/v1/logs", [log_bytes(one, LEVEL, semconv, now) for one in happened.records], semconv)
        ask = _loki
    time.sleep(_SETTLE_SECONDS)
    queries = sorted({filled(query.text) for query in asked(store) if query.text != BY_ID})
    answers = {query: ask(address, query, begins, ends) for query in queries}
    text = json.dumps(answers, indent=1, ensure_ascii=False)
    (ANSWERS / f"{store}-{semconv}.json").write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 5 or sys.argv[1] not in ("tempo", "loki") or sys.argv[2] not in get_args(Semconv):
        raise SystemExit(__doc__)
    main(sys.argv[1], sys.argv[2], *sys.argv[3:])  # type: ignore[arg-type]  # checked above
