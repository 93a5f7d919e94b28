"""What Prometheus, Loki and Tempo refuse with the settings that they have by default, in a receiver of the tests.

Prometheus, without a window for what is out of order, makes a sample of `target_info` of each resource at the earliest
and at the latest time of a request, and refuses the request when any sample is older than the newest of its series.
Loki refuses what is more than an hour behind the newest record of its stream, or older than a week.
"""

import time
from collections.abc import Mapping
from typing import Any, Final

from tests.otel.receiver import Receiver, text_of
from tests.otel.reply import REQUESTS, Reply, Signal

_HOUR_NS: Final = 3_600_000_000_000
_WEEK_NS: Final = 168 * _HOUR_NS


class DefaultStores:
    """The rules, in front of a receiver; `refused` says what they refused, and why."""

    def __init__(self, receiver: Receiver) -> None:
        self.refused: list[str] = []
        self._newest: dict[tuple[str, ...], int] = {}
        self._took = receiver.took
        self._receiver = receiver
        receiver.http.took = self._judge

    def _judge(self, signal: Signal, path: str, headers: Mapping[str, str], body: bytes, connection: str) -> Reply:
        message = REQUESTS[signal].FromString(body)
        why = self._prometheus(message) if signal == "metrics" else self._loki(message) if signal == "logs" else ""
        if why:
            self.refused.append(f"{signal}: {why}")
        self._receiver.always(**({signal: Reply(400, message=why)} if why else {}))
        return self._took(signal, path, headers, body, connection)

    def _prometheus(self, message: Any) -> str:
        for part in message.resource_metrics:
            instance = text_of(part.resource, "service.instance.id")
            points = [
                (metric.name, point)
                for scope in part.scope_metrics
                for metric in scope.metrics
                for point in (*metric.sum.data_points, *metric.histogram.data_points, *metric.gauge.data_points)
            ]
            times = sorted(point.time_unix_nano for _, point in points)
            if why := self._grows(("target_info", instance), times[0], strictly=False):
                return why
            self._newest["target_info", instance] = times[-1]
            for name, point in points:
                labels = (f"{one.key}={one.value}" for one in sorted(point.attributes, key=lambda one: str(one.key)))
                if why := self._grows((name, instance, *labels), point.time_unix_nano, strictly=True):
                    return why
        return ""

    def _grows(self, series: tuple[str, ...], time_ns: int, *, strictly: bool) -> str:
        before = self._newest.get(series, 0)
        if time_ns < before or (strictly and time_ns == before):
            return f"out of order sample of {series[0]}"
        self._newest[series] = time_ns
        return ""

    def _loki(self, message: Any) -> str:
        for part in message.resource_logs:
            stream = ("logs", text_of(part.resource, "service.instance.id"))
            for record in (one for scope in part.scope_logs for one in scope.log_records):
                if record.time_unix_nano < self._newest.get(stream, 0) - _HOUR_NS:
                    return "entry too far behind"
                if record.time_unix_nano < time.time_ns() - _WEEK_NS:
                    return "entry too old"
                self._newest[stream] = max(self._newest.get(stream, 0), record.time_unix_nano)
        return ""
