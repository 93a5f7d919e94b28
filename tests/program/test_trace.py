"""A receiver shows the traces of the sessions it holds, the same that go to an OTLP endpoint."""

from importlib.resources import files

from tests.otel.receiver import Receiver
from tests.program.driver import Machine


def test_the_trace_of_a_receiver_is_the_trace_of_the_endpoint(machine: Machine) -> None:
    with Receiver() as endpoint:
        machine.with_team().environment["EXPORTER_OTEL__ENDPOINT"] = endpoint.url
        machine.environment["EXPORTER_OTEL__HISTORY_DAYS"] = "36500"
        session = machine.home / "session-state" / "s"
        session.mkdir()
        (session / "events.jsonl").write_bytes(files("exporter.demo").joinpath("session.jsonl").read_bytes())
        machine.deliver()

        assert machine.team is not None
        told = machine.team.get("/api/v1/sessions/s/trace")

        spans = [span for part in told["resourceSpans"] for scope in part["scopeSpans"] for span in scope["spans"]]
        sent = {(span.trace_id.hex(), span.span_id.hex()): span.name for span in endpoint.spans()}
        assert {(span["traceId"], span["spanId"]): span["name"] for span in spans} == sent
        assert len(sent) > 30
