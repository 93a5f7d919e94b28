"""The generated files say what the settings say, and the example loads."""

import json
import re
import shutil
import tomllib
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from config.example import example
from config.fields import Field, SettingsTable, Sinks, fields, leaves, members
from config.schema import schema, schema_text
from config.settings import Allow, Settings, Source
from tests.config.loading import Loading
from tests.otel.certificates import make_certificates


def packaged(name: str) -> str:
    return resources.files("config").joinpath(name).read_text(encoding="utf-8")


def uncommented() -> str:
    return re.sub(r"^#(?=\S)", "", example(), flags=re.MULTILINE)


def test_the_example_in_the_package_is_the_generated_one() -> None:
    assert packaged("exporter.example.toml") == example(), "python -m config.example > config/exporter.example.toml"


def test_the_schema_in_the_package_is_the_generated_one() -> None:
    written = packaged("exporter.schema.json")

    assert json.loads(written) == json.loads(schema_text()), "python -m config.schema > config/exporter.schema.json"


def test_the_example_as_it_stands_sets_nothing(loading: Loading) -> None:
    assert set(loading(example()).origins.values()) == {"default"}


@pytest.fixture
def example_files(loading: Loading, tmp_path: Path) -> Path:
    directory = loading.file.parent
    (directory / "mc.token").write_text("token")
    (directory / "rpc.token").write_text("token")
    (directory / "metrics.token").write_text("token")
    (directory / "otel.headers").write_text("a=b")
    shutil.copy(make_certificates(tmp_path).authority, directory / "mc-ca.pem")
    return directory


def test_the_example_uncommented_loads_and_holds_the_defaults(loading: Loading, example_files: Path) -> None:
    loaded = loading(uncommented())

    alternatives = {"mission_control.default.token", "otel.default.headers", "receiver.store_file"}
    assert {path for path, origin in loaded.origins.items() if origin == "default"} == alternatives
    for member in members(Settings).values():
        if isinstance(member, Field) and member.example is None and not member.path and member.kind != "tables":
            assert getattr(loaded.settings, member.name) == member.default
    token_file = str(example_files / "rpc.token")
    assert loaded.settings.source == (Source(url="rpc://127.0.0.1:4321", token_file=token_file),)
    assert loaded.settings.limits == Settings().limits
    assert loaded.settings.redaction.known_files == (str(example_files / "mc.token"),)
    assert loaded.settings.redaction.allow == (Allow(value="AKIAIOSFODNN7EXAMPLE"),)


def test_the_example_explains_every_setting() -> None:
    text = " ".join(line.removeprefix("# ") for line in example().splitlines())

    for member in members(Settings).values():
        below = [] if isinstance(member, Field) else [*members(member.struct).values(), *leaves(member.struct).values()]
        for one in (member, *below):
            assert one.name in text
            assert one.meaning in text
            assert one.meaning.endswith(".")


def test_no_line_of_the_example_is_too_wide() -> None:
    assert max(map(len, example().splitlines())) <= 120


def test_the_schema_has_every_setting_with_meaning_and_default() -> None:
    whole = schema()
    for name, member in members(Settings).items():
        match member:
            case Field():
                check(whole["properties"][name], member)
            case SettingsTable() | Sinks():
                properties = whole["$defs"][member.struct.__name__]["properties"]
                assert set(properties) == set(members(member.struct))
                for field in fields(member.struct).values():
                    check(properties[field.name], field)


def check(described: dict[str, Any], field: Field) -> None:
    assert described["description"] == field.meaning
    if field.default is not None:
        assert json.dumps(described["default"]) == json.dumps(field.default)


def test_the_schema_takes_one_sink_or_sinks_by_name_and_never_null() -> None:
    whole = schema()
    one, many = whole["properties"]["mission_control"]["anyOf"]

    assert one == {"$ref": "#/$defs/MissionControl"}
    assert many["additionalProperties"] == one
    assert "url" in many["propertyNames"]["not"]["enum"]
    assert "null" not in json.dumps(whole)
    assert whole["additionalProperties"] is False


def test_the_schema_knows_what_excludes_each_other() -> None:
    definitions = schema()["$defs"]

    assert definitions["MissionControl"]["allOf"] == [{"not": {"required": ["token", "token_file"]}}]
    assert definitions["ReceiverSettings"]["allOf"] == [{"not": {"required": ["store", "store_file"]}}]
    assert definitions["Otel"]["allOf"] == [{"not": {"required": ["headers", "headers_file"]}}]
    assert (definitions["Allow"]["minProperties"], definitions["Allow"]["maxProperties"]) == (1, 1)


def test_the_schema_requires_nothing_because_a_variable_may_give_it() -> None:
    assert not [definition for definition in schema()["$defs"].values() if definition.get("required")]


def test_the_uncommented_example_is_toml() -> None:
    assert set(tomllib.loads(uncommented())) == set(members(Settings))
