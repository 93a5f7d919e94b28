"""Odd bytes arrive as they are; what cannot be sent is in quarantine, with its reason and place (F30-F32, F41-F43)."""

from collections.abc import Callable

import pytest

from tests.program.driver import Machine
from tests.program.session_files import SessionFile, event_id
from tests.program.waiting import until

MEGABYTE = 1_000_000
RESIDENT_BYTES_MAX = 150 * MEGABYTE


def with_data(session: SessionFile, data: bytes, extra: bytes = b"") -> bytes:
    """An event of the chain whose data is these very bytes."""
    line = session.event(text="here")
    return line.replace(b'{"content":"here"}', data)[:-1] + extra + b"}"


ODD: dict[str, Callable[[SessionFile], bytes]] = {
    "unknown_type": lambda s: s.event(type="from.the.future", data={"a": [1, {"b": None}]}),
    "unknown_fields": lambda s: with_data(s, b'{"x":1}', b',"newField":{"deep":[true]},"another":-0.0'),
    "large_numbers": lambda s: with_data(s, b'{"a":9223372036854775809,"b":1e400,"c":-1E-400,"d":1.000000000000001}'),
    "duplicate_keys": lambda s: with_data(s, b'{"k":1,"k":2,"k":1}'),
    "line_separators": lambda s: with_data(s, '{"t":"a\u2028b\u2029c\u0085d"}'.encode()),
    "lone_surrogates": lambda s: with_data(s, rb'{"t":"\ud800 and \udfff","\udc00":1}'),
    "escapes": lambda s: with_data(s, rb'{"t":"\u0041\/\b\f\u0000\u00e9","e":"\"}{\""}'),
    "white_space": lambda s: with_data(s, b'{ "t" :\t[ 1 , 2 ] }', b' , "z" : 1 '),
    "deep_nesting": lambda s: with_data(s, b'{"d":' + b"[" * 2_000 + b"]" * 2_000 + b"}"),
    "four_byte_characters": lambda s: with_data(s, '{"t":"\U0001f600 \U000e0041 \ufeff"}'.encode()),
    "data_of_another_shape": lambda s: with_data(s, b"[1,2,3]"),
    "no_data_to_speak_of": lambda s: with_data(s, b"null"),
    "odd_envelope_fields": lambda s: s.event(agentId=7, timestamp=None),
}


def test_an_odd_event_arrives_byte_for_byte(machine: Machine, subtests: pytest.Subtests) -> None:
    team = machine.with_team().team
    assert team is not None
    expected: dict[str, tuple[SessionFile, list[bytes]]] = {}
    for kind, make in ODD.items():
        session = machine.session()
        expected[kind] = session, [session.event(), make(session), session.event()]
        session.append(expected[kind][1])

    answer = machine.exporter("run", "--until-idle")

    for kind, (session, lines) in expected.items():
        with subtests.test(kind):
            team.assert_holds(session.id, lines)
    assert answer.returncode == 0, answer.stderr
    machine.verify()


def test_empty_lines_and_carriage_returns_are_no_part_of_an_event(delivering: Machine) -> None:
    assert delivering.team is not None
    session = delivering.session()
    lines = session.events(20)
    session.append_bytes(b"\n\r\n" + b"\r\n\n".join(lines) + b"\r\n\n\n")

    delivering.deliver()

    durable = [line for line in lines if b'"ephemeral":true' not in line]
    delivering.team.assert_holds(session.id, durable)
    delivering.verify()


def test_events_glued_on_one_line_are_all_delivered(delivering: Machine) -> None:
    assert delivering.team is not None
    session = delivering.session()
    lines = [session.event(text='a "}{" in a text') for _ in range(6)]
    session.append([lines[0], lines[1] + lines[2], lines[3] + lines[4] + lines[5]])

    delivering.deliver()

    delivering.team.assert_holds(session.id, lines)
    delivering.verify()


@pytest.mark.parametrize("cut", ["in the middle", "in a character", "before the newline"])
def test_a_torn_line_is_not_sent_before_it_is_whole(machine: Machine, cut: str) -> None:
    counting = machine.with_floor().floor
    assert counting is not None
    session, other = machine.session().write(5), machine.session().write(1)
    line = session.event(text="caf\u00e9 " * 20)
    place = {"in the middle": 30, "in a character": line.index("\u00e9".encode()) + 1, "before the newline": len(line)}
    machine.start()
    machine.assert_delivered()
    before = session.durable()

    session.append_bytes(line[: place[cut]])
    machine.assert_delivered_to_floor(other.write(3))
    held = counting.lines(session.id)
    session.append_bytes(line[place[cut] :] + b"\n")
    counting.wait_for(session.id, [*map(event_id, before), event_id(line)])

    assert held == before
    assert counting.lines(session.id) == [*before, line]
    assert counting.repeated() == 0
    machine.verify()


def test_a_torn_line_is_held_over_a_restart(machine: Machine) -> None:
    counting = machine.with_floor().floor
    assert counting is not None
    session = machine.session().write(5)
    before = session.durable()
    line = session.event()
    session.append_bytes(line[:40])
    machine.deliver()
    held = counting.lines(session.id)
    session.append_bytes(line[40:] + b"\n")

    machine.deliver()

    assert held == before
    assert counting.lines(session.id) == [*before, line]
    machine.verify()


def test_a_line_that_is_never_finished_is_reported(machine: Machine) -> None:
    machine.with_floor()
    session = machine.session().write(5)
    line = session.event()
    machine.environment["EXPORTER_LIMITS__INCOMPLETE_LINE_SECONDS"] = "1"
    machine.start()
    machine.assert_delivered_to_floor(session)

    offset = session.path.stat().st_size

    def reported() -> list[tuple[str, int]]:
        [source] = machine.json("status")["sources"]
        return [(one["kind"], one["offset"]) for one in source["problems"]]

    session.append_bytes(line[:40])
    until(lambda: reported() == [("incomplete_line", offset)], "a word about the incomplete line", seconds=60)
    session.append_bytes(line[40:] + b"\n")

    machine.assert_delivered_to_floor(session)


REASONS = {
    "missing_id": "no_id",
    "id_of_another_type": "bad_id",
    "bad_utf8": "not_utf8",
    "page_of_nuls": "nul_bytes",
}
"""Why what is not simply `not_json` is in quarantine."""
BROKEN = {
    "garbage": b"!! this is not json at all",
    "cut_json": b'{"type":"assistant.message","data":{"content":"torn',
    "missing_id": b'{"type":"assistant.message","data":{},"timestamp":"2026-11-18T09:58:24.100Z","parentId":null}',
    "id_of_another_type": b'{"type":"x","data":{},"id":12,"timestamp":"2026-11-18T09:58:24.100Z","parentId":null}',
    "bad_utf8": b'{"type":"x","data":{"t":"\xff\xfe"},"id":"0b2f3a61-6f1b-4b57-8b0c-3f5f0a5c7f11"}',
    "not_an_object": b'["an","array"]',
    "page_of_nuls": b"\0" * 4096,
}


def test_a_broken_line_is_quarantined_with_reason_and_offset_and_the_rest_delivered(
    delivering: Machine, subtests: pytest.Subtests
) -> None:
    assert delivering.team is not None
    expected: dict[str, tuple[SessionFile, list[bytes], int]] = {}
    for kind, line in BROKEN.items():
        session = delivering.session()
        good = [session.event() for _ in range(4)]
        session.append(good[:2])
        expected[kind] = session, good, session.path.stat().st_size
        session.append([line, *good[2:]])

    answer = delivering.exporter("run", "--until-idle")

    listed = delivering.json("quarantine", "list")["quarantined"]
    for kind, (session, good, offset) in expected.items():
        with subtests.test(kind):
            delivering.team.assert_holds(session.id, good)
            found = [(one["offset"], one["size"], one["reason"]) for one in listed if one["session"] == session.id]
            assert found == [(offset, len(BROKEN[kind]), REASONS.get(kind, "not_json"))]
    assert len(listed) == len(BROKEN)
    assert answer.returncode == 4, answer.stderr
    delivering.verify()


def test_nuls_before_an_event_on_its_line_cost_no_event(delivering: Machine) -> None:
    assert delivering.team is not None
    session = delivering.session()
    good = [session.event() for _ in range(3)]
    session.append([good[0], b"\0" * 700 + good[1], good[2]])

    answer = delivering.exporter("run", "--until-idle")

    # Either the event is cut out and delivered, or the whole line is in quarantine; it never just disappears.
    assert answer.returncode in (0, 4), answer.stderr
    listed = delivering.json("quarantine", "list")["quarantined"]
    arrived = delivering.team.count(session.id)
    assert arrived == 3 or (arrived == 2 and len(listed) >= 1)
    delivering.verify()


def test_an_event_torn_by_the_next_one_is_quarantined_alone(delivering: Machine) -> None:
    assert delivering.team is not None
    session = delivering.session()
    first, torn, last = session.event(), session.event(), session.event()
    session.append([first, torn[: len(torn) // 2] + last])

    delivering.deliver(expected_exit=4)

    delivering.team.assert_holds(session.id, [first, last])
    assert delivering.quarantined() == [("not_json", len(first) + 1, None)]
    delivering.verify()


def test_an_event_of_3_megabytes_is_delivered(delivering: Machine) -> None:
    session = delivering.session()
    session.append([session.event(), session.event(text="many words " * (3 * MEGABYTE // 11)), session.event()])

    delivering.deliver()

    delivering.assert_delivered()


def test_a_line_over_the_limit_is_quarantined_in_bounded_memory(delivering: Machine) -> None:
    assert delivering.team is not None
    session = delivering.session().write(10)
    before = session.durable()
    offset = session.path.stat().st_size
    huge = session.event(text="many words " * (100 * MEGABYTE // 11))
    last = session.event()
    session.append([huge, last])
    running = delivering.start()

    delivering.team.wait_for(session.id, [*before, last])
    resident = running.resident_bytes()

    delivering.team.assert_holds(session.id, [*before, last])
    listed = delivering.json("quarantine", "list")["quarantined"]
    assert {(one["session"], one["offset"], one["size"]) for one in listed} == {(session.id, offset, len(huge))}
    delivering.verify()
    print(f"100 MB line: {resident / MEGABYTE:.0f} MB resident at most")
    assert resident <= RESIDENT_BYTES_MAX


def test_an_event_the_receiver_takes_no_more_is_quarantined_and_replayed_once_it_does(machine: Machine) -> None:
    counting = machine.with_floor().floor
    assert counting is not None
    machine.tables["floor"]["max_event_bytes"] = 65_536
    session = machine.session()
    lines = [session.event(), session.event(text="word " * 20_000), session.event()]
    session.append(lines)
    machine.deliver(expected_exit=4)
    held = counting.lines(session.id)
    number = machine.json("quarantine", "list")["quarantined"][0]["n"]
    machine.tables["floor"]["max_event_bytes"] = 1_000_000

    answer = machine.exporter("quarantine", "replay", str(number))

    assert held == [lines[0], lines[2]]
    assert answer.returncode == 0, answer.stderr
    assert set(counting.lines(session.id)) == set(lines)
    assert machine.json("quarantine", "list")["quarantined"] == []
    machine.verify()


def test_a_repeated_id_and_a_broken_chain_stop_nothing(delivering: Machine) -> None:
    assert delivering.team is not None
    session = delivering.session()
    first, second = session.event(), session.event()
    stray = session.event(parentId="5d0e2c7a-0000-4000-8000-000000000000")
    last = session.event()
    session.append([first, second, first, stray, last])

    delivering.exporter("run", "--until-idle")

    delivering.team.assert_holds(session.id, [first, second, stray, last])
    delivering.verify()


def test_a_file_of_nothing_but_nuls_is_no_reason_to_stop(delivering: Machine) -> None:
    good, bad = delivering.session().write(10), delivering.session()
    bad.append_bytes(b"\0" * 10_000)
    assert bad.path.stat().st_size == 10_000

    answer = delivering.exporter("run", "--until-idle")

    assert answer.returncode in (0, 4), answer.stderr
    assert delivering.team is not None
    delivering.team.assert_holds(good.id, good.durable())
    delivering.verify()
