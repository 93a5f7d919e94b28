"""What we count of real sessions, and what the CLI counted itself at the time: the same, difference by difference."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from otel import instruments as metric
from otel.names import Semconv, Value
from tests.otel.captures import captures, objects
from tests.otel.metered import Total, Totals, measure, totals

TOKENS: Final = {
    metric.INPUT_TOKENS: "inputTokens",
    metric.OUTPUT_TOKENS: "outputTokens",
    metric.CACHE_READ_TOKENS: "cacheReadTokens",
    metric.CACHE_WRITE_TOKENS: "cacheWriteTokens",
    metric.REASONING_TOKENS: "reasoningTokens",
}
# What the CLI measures and writes nowhere, so that we have nothing of it.
NOT_ON_DISK: Final = {
    "gen_ai.client.inference.time_per_output_chunk": "only the mean of a call is recorded",
    "github.copilot.sandbox.operation.count": "sandbox decisions are ephemeral",
    "github.copilot.mcp.server.connection.count": "connections of servers are ephemeral",
}
# How long agents took is not judged: when the CLI itself begins and ends an interaction is not recorded exactly.
NOT_JUDGED: Final = "invoke_agent"
EVERYTHING: Final = ""
# By capture, and by what a line of the comparison says.
EXPLAINED: Final = {
    "kill9": {EVERYTHING: "the CLI lost all that it had counted before it was killed"},
    "live_rpc": {EVERYTHING: "turns that were rewound, and what a fork did, are not in this session's file"},
    "mc_resume": {EVERYTHING: "the CLI's telemetry was on in one of two runs only"},
    "sub_bg": {"time_to_first_chunk": "the CLI leaves out calls of sub-agents"},
    "sub_sync": {"time_to_first_chunk": "the CLI leaves out calls of sub-agents"},
    "sub_bg-1.0.48": {"token.usage": "the CLI has one call for all turns of a sub-agent"},
}
UNKNOWN_BEFORE: Final = "gen_ai.provider.name"  # CLI 1.0.48 does not record who answered
SECONDS_PER_CALL: Final = 0.012


def without_servers(attributes: dict[str, Value], old: bool) -> frozenset[tuple[str, Value]]:
    left_out = {"server.address", "server.port", UNKNOWN_BEFORE if old else ""}
    return frozenset((name, value) for name, value in attributes.items() if name not in left_out)


def counted_by_the_cli(capture: Path, old: bool) -> Totals:
    """The CLI's own totals: the newest point of every stream, added up over the processes of a session."""
    newest: dict[tuple[Any, ...], dict[str, Any]] = {}
    for found in objects(capture / "otel.jsonl"):
        if found.get("type") == "metric" and found["name"] not in NOT_ON_DISK:
            for point in found["dataPoints"]:
                labels = without_servers(point["attributes"], old)
                newest[found["name"], labels, tuple(point["startTime"])] = point
    added: Totals = {}
    for (name, labels, _), point in newest.items():
        value = point["value"]
        count, total = (value["count"], value["sum"]) if isinstance(value, dict) else (0, value)
        before = added.get((name, labels), Total(0, 0))
        added[name, labels] = Total(before.times + count, before.total + total)
    return added


def counted_by_us(capture: Path, old: bool) -> Totals:
    semconv: Semconv = "legacy" if old else "cli"
    lines = (capture / "events.jsonl").read_bytes().split(b"\n")
    found = totals(measure(lines, semconv), semconv)
    return {(name, without_servers(dict(labels), old)): total for (name, labels), total in found.items()}


def differences(theirs: Totals, ours: Totals) -> Iterator[str]:
    """What is not the same. Seconds are, as far as timestamps of whole milliseconds can tell."""
    for name, labels in sorted(theirs.keys() | ours.keys(), key=str):
        cli, here = theirs.get((name, labels)), ours.get((name, labels))
        told = f"{name}{dict(sorted(labels))}"
        if cli is None or here is None:
            yield f"{told}: the CLI has {cli}, we have {here}"
            continue
        timed = ".duration" in name or ".time_to_" in name
        close = abs(cli.total - here.total) <= (SECONDS_PER_CALL * max(1, cli.times) if timed else 0)
        if (cli.times and cli.times != here.times) or not (close or (timed and NOT_JUDGED in told)):
            yield f"{told}: the CLI has {cli}, we have {here}"


@pytest.mark.parametrize("capture", captures("events.jsonl", "otel.jsonl"))
def test_we_count_what_the_cli_counted(capture: Path) -> None:
    old = "1.0.48" in capture.parent.name
    theirs = counted_by_the_cli(capture, old)
    names = {name for name, _ in theirs}

    ours = {key: total for key, total in counted_by_us(capture, old).items() if key[0] in names}
    found = list(differences(theirs, ours))

    reasons = EXPLAINED.get(f"{capture.name}-1.0.48" if old else capture.name, {})
    unexplained = [line for line in found if not any(part in line for part in reasons)]
    print(f"{capture.name}: {len(theirs)} series of the CLI, {len(found)} different, {len(unexplained)} unexplained")
    assert unexplained == []
    assert [part for part in reasons if not any(part in line for line in found)] == []


@pytest.mark.parametrize("capture", captures("otel.jsonl"))
def test_every_metric_of_the_cli_is_in_our_table_or_known_not_to_be_on_disk(capture: Path) -> None:
    ours = {instrument.name: instrument.unit for instrument in metric.instruments()}
    theirs = {found["name"]: found for found in objects(capture / "otel.jsonl") if found.get("type") == "metric"}

    for name, found in theirs.items():
        assert name in NOT_ON_DISK or ours.get(name) == found["unit"], name


@pytest.mark.parametrize("capture", captures("otel.jsonl"))
def test_our_histograms_have_the_bounds_of_the_clis(capture: Path) -> None:
    ours = {instrument.name: instrument.bounds for instrument in metric.instruments()}

    for found in objects(capture / "otel.jsonl"):
        if found.get("type") == "metric" and found["name"] not in NOT_ON_DISK:
            for point in found["dataPoints"]:
                bounds = point["value"]["buckets"]["boundaries"] if isinstance(point["value"], dict) else ()
                assert tuple(map(float, bounds)) == ours[found["name"]], found["name"]


@pytest.mark.parametrize("capture", captures("events.jsonl", "otel.jsonl"))
def test_the_tokens_of_a_session_are_those_that_its_shutdown_tells(capture: Path) -> None:
    told = [found["data"] for found in objects(capture / "events.jsonl") if found["type"] == "session.shutdown"]
    if not told:
        pytest.skip("this session was never shut down")
    usage = [model["usage"] for model in told[-1]["modelMetrics"].values()]

    found = counted_by_us(capture, old=False)

    for instrument, field in TOKENS.items():
        counted = sum(total.total for (name, _), total in found.items() if name == instrument.name)
        assert counted == sum(model[field] for model in usage), instrument.name
