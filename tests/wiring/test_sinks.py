"""A sink that is registered is known everywhere, and one that is half done fails here with what it misses."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from config.example import example
from config.fields import Sinks, fields, members
from config.load import load
from config.schema import schema
from config.settings import Settings
from exporter.app import build
from exporter.core.names import LOCAL, leaving, names_of
from exporter.daemon.running import RunningExporter
from exporter.pipeline.redactors import Redactors
from exporter.sinks.sink import Sink
from exporter.wiring.sinks.kind import SinkKind
from exporter.wiring.sinks.registry import KINDS, addresses, configured, of_demo, probes, sink_names, table
from tests.sinks import test_contract
from tests.sinks.contract import SinkContract

ROOT = Path(__file__).resolve().parents[2]
CONFIGURED = [kind for kind in KINDS if kind.section]
EACH = pytest.mark.parametrize("kind", CONFIGURED, ids=lambda kind: kind.section)
ALL = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.section or LOCAL)


def struct_of(kind: SinkKind) -> type[msgspec.Struct]:
    member = members(Settings)[kind.section]
    assert isinstance(member, Sinks), f"[{kind.section}] is no table of sinks in config/settings.py"
    return member.struct


def settings_of_all(home: Path) -> Settings:
    """Settings with two of each kind, their required keys from the examples in `config/`."""
    text = ""
    for kind in CONFIGURED:
        for name in ("default", "second"):
            required = {one.name: str(one.example) for one in fields(struct_of(kind)).values() if one.required}
            assert required, f"[{kind.section}] can be set without saying where"
            text += f"[{kind.section}.{name}]\n"
            text += "".join(f"{key} = {json.dumps(f'{value}/{name}')}\n" for key, value in required.items())
    home.mkdir(exist_ok=True)
    file = home / "exporter.toml"
    file.write_text(text, encoding="utf-8")
    environ = {"HOME": str(home), "XDG_STATE_HOME": str(home)}
    return load(file=file, environ=environ, flags={}, fallbacks=False).settings


@pytest.fixture
def everything(tmp_path: Path) -> Settings:
    return settings_of_all(tmp_path / "home")


def running(settings: Settings) -> RunningExporter:
    Path(settings.state_dir).mkdir(mode=0o700, parents=True, exist_ok=True)
    return build(settings, lambda _: None, local=True, redaction=Redactors(lambda line, /: line, lambda text: text))


def test_every_table_of_sinks_in_the_settings_is_registered_and_the_other_way_round() -> None:
    tables = {name for name, member in members(Settings).items() if isinstance(member, Sinks)}

    assert tables == {kind.section for kind in CONFIGURED}, "one line in exporter/wiring/sinks/registry.py"
    assert len({kind.section for kind in KINDS}) == len(KINDS)


@EACH
def test_the_example_and_the_schema_have_it(kind: SinkKind) -> None:
    assert f"#[{kind.section}]\n" in example()
    assert struct_of(kind).__name__ in schema()["$defs"]
    assert kind.section in schema()["properties"]


def test_status_names_what_a_daemon_runs(everything: Settings) -> None:
    async def look() -> None:
        exporter = running(everything)
        try:
            names = {run.name: run.sink_state.sink.url for run in exporter.daemon.runs}
            told = await exporter.answers().answer({"do": "status"}, lambda _: None)
        finally:
            await exporter.close()
        assert names.pop(LOCAL) == LOCAL
        assert names == addresses(everything), "`addresses` and `build` of a kind name other sinks"
        assert [one["name"] for one in told["sinks"] if one["name"] != LOCAL] == list(names)
        assert {name.partition(":")[0] for name in names} == set(sink_names(everything))
        assert set(sink_names(everything)) <= {one for name in names for one in names_of(name)}

    asyncio.run(look())


def test_verify_asks_it_or_it_says_why_not(everything: Settings) -> None:
    async def look() -> None:
        exporter = running(everything)
        try:
            for run in exporter.daemon.runs:
                sink = run.sink_state.sink
                can_look = type(sink).items is not Sink.items
                assert bool(sink.unproved) != can_look, f"{run.name}: `items` or `inspect`, or a reason in `unproved`"
        finally:
            await exporter.close()

    asyncio.run(look())


@ALL
def test_the_doctor_looks_at_it_or_there_is_a_reason_why_not(kind: SinkKind) -> None:
    assert (kind.probe is None) == bool(kind.unprobed)


def test_the_doctor_names_every_configured_sink(everything: Settings) -> None:
    assert [one.name for one in probes(everything)] == sink_names(everything)


def test_nothing_of_it_is_in_a_demo(everything: Settings) -> None:
    demo = of_demo(everything)

    assert list(configured(demo)) == []
    assert demo.source == ()
    assert sink_names(demo) == [LOCAL]
    below = Path(everything.state_dir)
    assert all(Path(str(one)).is_relative_to(below) for one in (demo.state_dir, demo.copilot_home))


@EACH
def test_the_redactor_knows_its_secrets(kind: SinkKind, everything: Settings) -> None:
    """What is sent with requests may stand in no event, so a kind with a secret has to say where that is."""
    known = fields(struct_of(kind))
    secret = next((one for one in known.values() if one.secret), None)
    file = next((one for one in known.values() if one.path and one.instead_of), None)
    one = getattr(everything, kind.section)["default"]
    if secret is None:
        assert list(kind.secrets(one)) == []
        return
    value: Any = {"authorization": "planted-secret"} if secret.kind == "pairs" else "planted-secret"
    assert "planted-secret" in kind.secrets(msgspec.structs.replace(one, **{secret.name: value}))
    assert file is not None
    assert kind.secret_file(msgspec.structs.replace(one, **{file.name: "/planted"})) == "/planted"


@ALL
def test_it_keeps_the_contract(kind: SinkKind) -> None:
    held = {one.section for one in vars(test_contract).values() if _is_contract(one)}

    assert kind.section in held, "a subclass of SinkContract in tests/sinks/test_contract.py"


def _is_contract(one: object) -> bool:
    return isinstance(one, type) and issubclass(one, SinkContract) and hasattr(one, "section")


def test_the_table_in_the_docs_is_the_one_of_the_registry() -> None:
    text = (ROOT / "docs" / "sinks.md").read_text(encoding="utf-8")

    assert text.partition("<!-- sinks:begin -->\n")[2].partition("\n<!-- sinks:end -->")[0] == table()


@EACH
def test_the_readme_says_what_goes_there(kind: SinkKind) -> None:
    rows = [line for line in (ROOT / "README.md").read_text(encoding="utf-8").splitlines() if line.startswith("|")]

    assert any(f"`[{kind.section}]`" in row.split("|")[1] for row in rows), "a row of *Exactly what leaves the machine*"


def test_an_archive_on_this_machine_is_not_told_to_leave_it() -> None:
    told = leaving({"archive": "file:///a", LOCAL: LOCAL, "otel": "https://user:secret@host:1/x"})

    assert told == ["otel (host:1)"]


@pytest.mark.parametrize(
    ("half_done", "test"),
    [
        ({"probe": None}, "the_doctor_looks_at_it_or_there_is_a_reason_why_not"),
        ({"section": "stream"}, "it_keeps_the_contract"),
        ({"section": "stream"}, "the_readme_says_what_goes_there"),
        ({"section": "stream"}, "the_example_and_the_schema_have_it"),
    ],
)
def test_a_half_done_kind_fails(half_done: dict[str, Any], test: str) -> None:
    import dataclasses

    kind = dataclasses.replace(CONFIGURED[-1], **half_done)

    with pytest.raises((AssertionError, KeyError)):
        globals()[f"test_{test}"](kind)


def test_every_source_of_the_settings_is_registered() -> None:
    from config import source as addresses_of_sources
    from exporter.wiring.sources import KINDS as SOURCES

    known = {name for name in vars(addresses_of_sources) if re.fullmatch(r"[A-Z][a-z]+Address", name)}
    assert {kind.address.__name__ for kind in SOURCES} == known
    assert all(kind.sees and kind.sees_not for kind in SOURCES)
    extras = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert all(f'\n{kind.name} = ["{kind.package}' in extras for kind in SOURCES if kind.package)
