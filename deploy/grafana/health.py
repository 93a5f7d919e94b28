"""Pipeline health: does everything that happens arrive, how far behind is it, and what is held back or masked?"""

from deploy.grafana import board, panels
from deploy.grafana.promql import STEP, growth, highest, increase, label_name, or_none, reporting, silent, summed, top
from otel import health as figures

_SINK = f"{{{{{label_name(figures.SINK)}}}}}"
_RULE = f"{{{{{label_name(figures.RULE)}}}}}"
_TYPE = f"{{{{{label_name(figures.TYPE)}}}}}"
_BY_SINK = [figures.SINK]
_BYTES = "bytes"


def health() -> board.Board:
    """The exporter's own figures, which it sends only where it is asked to."""
    made = board.Board(
        "health",
        "Pipeline health",
        "The exporter itself: lag, queue, retries, what was rejected, repeated, held back or masked.",
    )
    made.heading("At a glance")
    made.add(6, 3, *_exporters(), *_now(), *_counted())
    made.heading("On the way")
    made.add(12, 8, *_behind())
    made.heading("Endpoints")
    made.add(8, 8, *_answers())
    made.heading("Content")
    made.add(12, 9, *_content())
    return made


def _exporters() -> list[panels.Panel]:
    return [
        panels.figure("Exporters that report", "How many exporters send their figures now? None at all is an alarm.",
                      panels.COUNT, panels.metrics(reporting(figures.QUARANTINED), instant=True), alarm_below=1),
        panels.figure("Exporters gone silent", "How many sent figures within the last day and do not any more?",
                      panels.COUNT, panels.metrics(f"count({silent(figures.QUARANTINED, '1d')}) or vector(0)",
                                                   instant=True), warn=1),
    ]  # fmt: skip


def _now() -> list[panels.Panel]:
    asked: list[tuple[str, str, str, str, float | None]] = [
        ("Lag", "How old is the oldest event that some sink has not accepted?", panels.SECONDS,
         highest(figures.LAG_TIME), 300),
        ("Events behind", "How many events have the sinks not accepted yet?", panels.COUNT,
         summed(figures.LAG_EVENTS), None),
        ("Waiting", "How many records are made and wait to be sent?", panels.COUNT, summed(figures.QUEUE), None),
        ("Held back", "How many events are in quarantine?", panels.COUNT, summed(figures.QUARANTINED), 1),
    ]  # fmt: skip
    return [
        panels.figure(title, answers, unit, panels.metrics(query, instant=True), warn=warn)
        for title, answers, unit, query, warn in asked
    ]


def _counted() -> list[panels.Panel]:
    asked = [
        ("Rejected", "How many records did endpoints not take?", figures.REJECTED, 1),
        ("Masked", "How many secrets were masked?", figures.REDACTIONS, None),
        ("Unknown", "How many events were of a type that this version does not know?", figures.UNKNOWN_EVENTS, 1),
        ("Cut off", "How many spans were ended by a crash?", figures.ORPHANS, None),
        ("Defects", "How often did an error of the exporter keep something from telemetry?", figures.DEFECTS, 1),
    ]
    return [
        panels.figure(
            title,
            answers,
            panels.COUNT,
            panels.metrics(or_none(increase(each), summed(figures.QUARANTINED)), instant=True),
            warn=warn,
        )
        for title, answers, each, warn in asked
    ]


def _behind() -> list[panels.Panel]:
    asked = [
        ("Lag by sink", "How old is the oldest event that a sink has not accepted?", panels.SECONDS, figures.LAG_TIME),
        ("Events behind by sink", "How many events has a sink not accepted yet?", panels.COUNT, figures.LAG_EVENTS),
        ("Bytes behind by sink", "How much of the session files has a sink not accepted yet?", _BYTES,
         figures.LAG_BYTES),
        ("Waiting by sink", "How many records are made for a sink and wait to be sent?", panels.COUNT, figures.QUEUE),
    ]  # fmt: skip
    return [
        panels.lines(title, answers, unit, panels.metrics(highest(each, by=_BY_SINK, over=STEP), _SINK))
        for title, answers, unit, each in asked
    ]


def _answers() -> list[panels.Panel]:
    asked = [
        ("Retries", "When did endpoints not answer, or ask to wait?", figures.RETRIES),
        ("Repeated", "How many records went twice because an answer was lost?", figures.REPEATED),
        ("Rejected by sink", "Which endpoint did not take records?", figures.REJECTED),
    ]
    return [
        panels.stack(title, answers, panels.COUNT, panels.metrics(growth(each, by=_BY_SINK, over=STEP), _SINK))
        for title, answers, each in asked
    ]


def _content() -> list[panels.Panel]:
    masked = increase(figures.REDACTIONS, by=[figures.RULE])
    over_time = growth(figures.REDACTIONS, by=[figures.RULE], over=STEP)
    unknown = increase(figures.UNKNOWN_EVENTS, by=[figures.TYPE])
    orphans = growth(figures.ORPHANS, over=STEP)
    return [
        panels.ranking("Masked by rule", "Which kinds of secrets turn up in sessions?", panels.COUNT,
                       panels.metrics(top(20, masked), _RULE, instant=True)),
        panels.stack("Masked over time", "When do secrets turn up?", panels.COUNT, panels.metrics(over_time, _RULE)),
        panels.ranking("Unknown events", "Which types of events does this version not know?", panels.COUNT,
                       panels.metrics(top(20, unknown), _TYPE, instant=True)),
        panels.stack("Spans cut off", "When did sessions crash, so that spans were ended for them?", panels.COUNT,
                     panels.metrics(orphans, "spans")),
    ]  # fmt: skip
