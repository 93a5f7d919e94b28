"""What a host can, by the version that it answers with."""

from typing import Any

import pytest

from exporter.core.ahp.dialect import dialect_of


@pytest.mark.parametrize(
    ("version", "has_channels", "has_chats", "has_cursors"),
    [
        *((version, False, False, False) for version in (1, "1", "0.1.0", "0.1")),
        *((version, True, False, False) for version in ("0.2.0", "0.3.0", "0.3.9-beta")),
        *((version, True, True, False) for version in ("0.4.0", "0.5.0", "0.5")),
        *((version, True, True, True) for version in ("0.5.1", "0.6.0", "0.9.0", "1.0.0", "1.4.2+build")),
    ],
)
def test_a_version_says_whether_there_are_channels_chats_and_cursors(
    version: Any, has_channels: bool, has_chats: bool, has_cursors: bool
) -> None:
    found = dialect_of(version)

    assert found is not None
    assert (found.has_channels, found.has_chats, found.has_cursors) == (has_channels, has_chats, has_cursors)
    assert found.about("a:b") == ({"channel": "a:b"} if has_channels else {"resource": "a:b"})
    assert found.to_host() == ({"channel": "ahp-root://"} if has_channels else {})
    assert found.root == ("ahp-root://" if has_channels else "agenthost:/root")


@pytest.mark.parametrize("version", [True, 2, None, "", "2.0.0", "x0.5.1", "0.5.1.", "0.55555.1", "0..1"])
def test_any_other_version_has_no_dialect(version: Any) -> None:
    assert dialect_of(version) is None
