"""What a thousand session files that nobody writes to cost."""

from __future__ import annotations

import time

from tests.bench import measure
from tests.bench.generate import EventStream
from tests.bench.product import READY_TIMEOUT_SECONDS, home
from tests.bench.receiver import Receiver
from tests.bench.report import Row

CPU_MAX_PERCENT = 0.2
PSS_MAX_MB = 60
DESCRIPTORS_MAX = 128
READY_MAX_SECONDS = 1.0
EVENTS_EACH = 10
SETTLE_SECONDS = 3.0
TIMEOUT_SECONDS = 120


def rows(sessions: int, seconds: float) -> list[Row]:
    """Delivers them all once, starts again from the marks, and looks at the second daemon while nothing happens.

    Ready means that the control socket answers and that every session is followed; that it really follows is then shown
    by an event appended to one of them.
    """
    with Receiver(arena_bytes=100_000_000) as receiver, home() as place:
        place.configure(receiver.url)
        streams = [EventStream(2000 + number, ephemeral_share=0) for number in range(sessions)]
        paths = [place.new_session(stream, EVENTS_EACH) for stream in streams]
        receiver.reset(sessions * EVENTS_EACH)
        with place.running("run") as first:
            if not receiver.summary(TIMEOUT_SECONDS, first.check).complete:
                raise RuntimeError(f"{sessions} small sessions were not delivered: {first.log.read_text()[-2000:]}")
            first.stop()
        receiver.reset(1)
        with place.running("run") as second:
            measure.wait_until(lambda: place.follows(sessions), READY_TIMEOUT_SECONDS, "the control socket")
            ready = time.monotonic() - second.started
            time.sleep(SETTLE_SECONDS)
            before, began = measure.cpu_seconds(second.pid), time.monotonic()
            time.sleep(seconds)
            cpu = (measure.cpu_seconds(second.pid) - before) / (time.monotonic() - began) * 100
            pss, descriptors = measure.pss_bytes(second.pid) / 1e6, measure.descriptors(second.pid)
            with paths[-1].open("ab") as file:
                file.write(streams[-1].next_line())
            if not receiver.summary(READY_TIMEOUT_SECONDS, second.check).complete:
                raise RuntimeError("an event appended to an idle session did not arrive")
    at = f"{sessions:,} idle session files: "
    return [
        Row(f"{at}CPU", f"≤ {CPU_MAX_PERCENT} %", f"{cpu:.2f} %", cpu <= CPU_MAX_PERCENT, {"percent": round(cpu, 3)}),
        Row(f"{at}memory (PSS)", f"≤ {PSS_MAX_MB} MB", f"{pss:.0f} MB", pss <= PSS_MAX_MB, {"mb": round(pss, 1)}),
        Row(f"{at}descriptors", f"≤ {DESCRIPTORS_MAX}", f"{descriptors}", descriptors <= DESCRIPTORS_MAX),
        Row(f"{at}ready", f"≤ {READY_MAX_SECONDS:g} s", f"{ready:.2f} s", ready <= READY_MAX_SECONDS),
    ]
