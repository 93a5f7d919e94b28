"""The tables of names: complete in themselves, and the only place where a name is spelt."""

import ast
from collections import Counter
from pathlib import Path

import pytest

from otel import instruments, names
from otel.names import Instrument

OTEL = Path(names.__file__).parent
TABLES = {"names.py", "instruments.py"}
UNITS = {"s", "1"}
VERSIONS = {"1.0.48", "1.0.102", "exporter", "GenAI"}


def test_every_spelling_belongs_to_one_row() -> None:
    spellings = Counter(
        spelling
        for attribute in names.attributes()
        for spelling in {attribute.name, *attribute.spellings("both"), *attribute.spellings("latest")}
    )
    events = Counter(event.name for event in names.event_names())
    metrics = Counter(instrument.name for instrument in instruments.instruments())

    assert [name for table in (spellings, events, metrics) for name, count in table.items() if count > 1] == []


def test_every_attribute_has_a_type_a_level_and_an_origin() -> None:
    for attribute in names.attributes():
        assert attribute.type in (str, bool, int, float, tuple), attribute
        assert attribute.since in VERSIONS, attribute
    assert {event.since for event in names.event_names()} <= VERSIONS


def test_every_metric_has_a_unit_a_meaning_and_an_origin() -> None:
    for instrument in instruments.instruments():
        assert instrument.unit in UNITS or (instrument.unit[0], instrument.unit[-1]) == ("{", "}"), instrument
        assert instrument.since in VERSIONS, instrument
        assert instrument.meaning, instrument


def test_a_histogram_has_rising_bounds_and_a_counter_has_none() -> None:
    for instrument in instruments.instruments():
        assert bool(instrument.bounds) == (instrument.kind == "histogram"), instrument
        assert list(instrument.bounds) == sorted(set(instrument.bounds)), instrument


def test_every_metric_can_be_told_apart_by_repository_and_session_and_names_no_label_twice() -> None:
    for instrument in instruments.instruments():
        assert instrument.labels[-4:-2] == (names.GIT_REPOSITORY, names.CONVERSATION_ID), instrument
        assert instrument.labels[-2:] == instruments.OF_RESOURCE == (names.SERVICE_VERSION, names.USER_NAME), instrument
        assert len(set(instrument.labels)) == len(instrument.labels), instrument


@pytest.mark.parametrize("module", sorted(OTEL.rglob("*.py")), ids=lambda path: path.name)
def test_no_module_but_the_tables_spells_a_name(module: Path) -> None:
    constants = [node for node in ast.walk(ast.parse(module.read_text())) if isinstance(node, ast.Constant)]
    spelt = [
        (node.lineno, node.value)
        for node in constants
        if isinstance(node.value, str) and node.value.startswith(("gen_ai.", "github.copilot."))
    ]

    assert (module.name in TABLES) == bool(spelt), spelt


def test_every_metric_is_filled_by_a_machine() -> None:
    nodes = [node for path in (OTEL / "machines").rglob("*.py") for node in ast.walk(ast.parse(path.read_text()))]
    used = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    used |= {node.id for node in nodes if isinstance(node, ast.Name)}
    rows = {name for name, value in vars(instruments).items() if isinstance(value, Instrument)}

    assert rows - used == set()


def test_every_name_that_is_declared_is_used() -> None:
    declared = {name for name, value in vars(names).items() if isinstance(value, names.Attribute | names.EventName)}

    assert declared - _used() == set()
    assert "NOT_DECLARED" not in _used()


def _used() -> set[str]:
    """The names of the table that a module of ours refers to."""
    used = set()
    for module in (*OTEL.rglob("*.py"), *(OTEL.parent / "exporter").rglob("*.py")):
        for node in ast.walk(ast.parse(module.read_text())):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "names":
                used.add(node.attr)
            elif isinstance(node, ast.ImportFrom) and node.module == "otel.names":
                used.update(one.name for one in node.names)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and module.name == "names.py":
                used.add(node.id)
    return used
