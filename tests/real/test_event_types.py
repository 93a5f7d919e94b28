"""The list of event types is the one of the CLI."""

from __future__ import annotations

import pytest

from exporter.sources.event_types import KNOWN
from tests.real import event_types

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]


def test_the_list_of_event_types_is_that_of_the_schema_which_the_cli_ships() -> None:
    assert sorted(KNOWN) == event_types.types()
