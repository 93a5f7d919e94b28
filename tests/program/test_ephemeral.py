"""The envelope's own flag decides what is durable; ephemeral events never leave and never move a mark."""

from collections.abc import Callable

import pytest

from tests.program.driver import Machine
from tests.program.session_files import SessionFile

EPHEMERAL: dict[str, Callable[[SessionFile], bytes]] = {
    "as the CLI writes it": lambda s: s.event(ephemeral=True),
    "with white space": lambda s: s.event(ephemeral=True).replace(b'"ephemeral":true', b'"ephemeral" :\ttrue '),
    "in front": lambda s: b'{"ephemeral":true,' + s.event(ephemeral=True)[1:].replace(b',"ephemeral":true', b""),
    "of a type that is usually durable": lambda s: s.event(ephemeral=True, type="user.message"),
    "beside a nested false": lambda s: s.event(ephemeral=True, data={"ephemeral": False}),
    "with an escape in the key": lambda s: s.event(ephemeral=True).replace(b'"ephemeral"', rb'"\u0065phemeral"'),
    "with what only the scanner reads": lambda s: s.event(ephemeral=True).replace(
        b'"content":', b'"odd":"\\ud800","content":'
    ),
}
DURABLE: dict[str, Callable[[SessionFile], bytes]] = {
    "flag false": lambda s: s.event(ephemeral_=0).replace(b'"ephemeral_":0', b'"ephemeral":false'),
    "flag null": lambda s: s.event(ephemeral_=0).replace(b'"ephemeral_":0', b'"ephemeral":null'),
    "in a text": lambda s: s.event(text='{"id":1,"ephemeral":true}'),
    "unquoted at the end of a text": lambda s: s.event(data={"a": 1}, note=',"ephemeral":true}'),
    "nested in data": lambda s: s.event(data={"event": {"type": "x", "ephemeral": True}}),
    "nested beside data": lambda s: s.event(meta={"ephemeral": True}),
    "of a type that is usually ephemeral": lambda s: s.event(type="assistant.message_delta"),
}


def test_an_ephemeral_event_never_arrives(delivering: Machine, subtests: pytest.Subtests) -> None:
    assert delivering.team is not None
    assert delivering.floor is not None
    expected: dict[str, tuple[SessionFile, list[bytes]]] = {}
    for kind, make in EPHEMERAL.items():
        session = delivering.session()
        expected[kind] = session, [session.event(), session.event()]
        first, last = expected[kind][1]
        session.append([first, make(session), last])

    answer = delivering.exporter("run", "--until-idle")

    for kind, (session, lines) in expected.items():
        with subtests.test(kind):
            delivering.team.assert_holds(session.id, lines)
            assert delivering.floor.lines(session.id) == lines
    assert answer.returncode == 0, answer.stderr
    delivering.verify()


def test_a_durable_event_that_looks_ephemeral_arrives(delivering: Machine, subtests: pytest.Subtests) -> None:
    assert delivering.team is not None
    expected: dict[str, tuple[SessionFile, list[bytes]]] = {}
    for kind, make in DURABLE.items():
        session = delivering.session()
        expected[kind] = session, [session.event(), make(session), session.event()]
        session.append(expected[kind][1])

    answer = delivering.exporter("run", "--until-idle")

    for kind, (session, lines) in expected.items():
        with subtests.test(kind):
            delivering.team.assert_holds(session.id, lines)
    assert answer.returncode == 0, answer.stderr
    delivering.verify()


def test_ephemeral_events_alone_send_nothing_and_move_no_mark(delivering: Machine) -> None:
    assert delivering.team is not None
    assert delivering.floor is not None
    session, silent = delivering.session().write(10), delivering.session()
    delivering.deliver()
    posts = len(delivering.floor.posts)
    before = delivering.team.get(f"/api/v1/sessions/{session.id}/digest")
    for one in (session, silent):
        one.append([one.event(ephemeral=True) for _ in range(500)])

    delivering.deliver()

    assert len(delivering.floor.posts) == posts
    assert delivering.team.get(f"/api/v1/sessions/{session.id}/digest") == before
    assert delivering.team.count(silent.id) == 0
    delivering.verify()
    for one in (session, silent):
        one.write(5)
    delivering.deliver()
    delivering.assert_delivered()
    delivering.assert_sent_once()
