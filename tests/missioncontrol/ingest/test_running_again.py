"""A job that runs again, because another transaction did the same at once, tells what it would have told at first."""

from collections.abc import Callable

from exporter.core.events.redaction import Masked, Redacted, Refused
from exporter.missioncontrol.ingest import write_jobs
from exporter.missioncontrol.ingest.batch import Elements, sort_out
from exporter.missioncontrol.store.port import Database, Store
from tests.missioncontrol.store_contract import NOW, register
from tests.missioncontrol.store_contract import Refused as Failed

Make = Callable[..., bytes]


class Printing:
    """Every call prints a secret; the answer that says `unreadable` cannot be masked."""

    def rule_of(self, _data: bytes, /) -> str | None:
        return "printed"

    def mask(self, line: bytes, _redacted: Redacted, rule: str, /) -> Redacted:
        if b"unreadable" in line:
            return Refused("out_of_time")
        return Masked(line.replace(b"word", b"[word]"), (rule,))


def test_what_is_rejected_masked_and_counted_is_so_once(store: Store, make_event: Make) -> None:
    calls = [make_event(f"c{n}", "tool.execution_start", data={"toolCallId": f"t{n}"}) for n in (1, 2)]
    answers = [
        make_event(f"a{n}", "tool.execution_complete", data={"toolCallId": f"t{n}", "result": text})
        for n, text in ((1, "unreadable"), (2, "word"), (3, "of an unknown call"))
    ]
    live = make_event(
        "l", "tool.execution_partial_result", data={"toolCallId": "t2", "partialOutput": "word"}, ephemeral=True
    )
    batch = sort_out(Elements([*calls, *answers, live], []), event_bytes_max=1 << 20)
    batch.commands = Printing()
    arrived = list(batch.ephemeral)
    store.do(register("s"))

    def collide(database: Database) -> None:
        write_jobs.store_batch(database, "s", batch, NOW)
        raise Failed

    for _ in range(2):
        assert isinstance(store.submit(collide).exception(), Failed)
    stored = store.do(lambda database: write_jobs.store_batch(database, "s", batch, NOW))

    assert (stored.batch.rejected, stored.batch.calls_unknown) == (["a1"], 1)
    assert [event.envelope.id for event in stored.new] == ["c1", "c2", "a2", "a3"]
    assert [line.count(b"[word]") for line in stored.batch.ephemeral] == [1]
    assert (batch.rejected, batch.calls_unknown, batch.ephemeral) == ([], 0, arrived)
