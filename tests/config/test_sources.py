"""Sources: none unless named, each what its address says, and a token only from a file."""

import pytest

from config.settings import Source
from config.source import AhpAddress, FileAddress, RpcAddress, TapAddress, address_of
from tests.config.loading import Loading


def test_nothing_is_connected_to_that_is_not_named(loading: Loading) -> None:
    assert loading("").settings.source == ()


def test_each_is_what_its_address_says(loading: Loading) -> None:
    given = "[[source]]\nurl = 'file'\n[[source]]\nurl = 'tap'\n[[source]]\nurl = 'rpc://[::1]:4321'\npush = true"
    loaded = loading(given).settings.source

    assert [address_of(one) for one in loaded] == [FileAddress(), TapAddress(), RpcAddress("::1", 4321)]
    assert [one.push for one in loaded] == [False, False, True]


@pytest.mark.parametrize(
    "given",
    ["url = 'rpc://127.0.0.1:4321?token_file=it.token'", "url = 'rpc://127.0.0.1:4321'\ntoken_file = 'it.token'"],
)
def test_the_token_file_is_named_in_the_address_or_beside_it(loading: Loading, given: str) -> None:
    file = loading.file.with_name("it.token")
    file.write_text("the-token")

    [source] = loading(f"[[source]]\n{given}").settings.source

    assert source == Source(url="rpc://127.0.0.1:4321", token_file=str(file))
    assert address_of(source) == RpcAddress("127.0.0.1", 4321, str(file))


@pytest.mark.parametrize(
    ("url", "name", "socket"),
    [
        ("ahp+ws://localhost:1", "ahp+ws://localhost:1/", "ws://localhost:1/"),
        ("ahp+ws://[::1]:3/agents", "ahp+ws://[::1]:3/agents", "ws://[::1]:3/agents"),
        ("ahp+wss://a.example.com/?token_file=it.token", "ahp+wss://a.example.com:443/", "wss://a.example.com:443/"),
    ],
)
def test_an_agent_host_is_named_by_its_web_socket(loading: Loading, url: str, name: str, socket: str) -> None:
    loading.file.with_name("it.token").write_text("the-token")

    [source] = loading(f"[[source]]\nurl = '{url}'").settings.source

    address = address_of(source)
    assert isinstance(address, AhpAddress)
    assert (source.url, address.socket) == (name, socket)
    assert source.token_file == (str(loading.file.with_name("it.token")) if "?" in url else None)


def test_a_variable_gives_them_as_json(loading: Loading) -> None:
    loaded = loading("", {"EXPORTER_SOURCE": '[{"url": "rpc://127.0.0.1:1"}, {"url": "tap"}]'})

    assert [one.url for one in loaded.settings.source] == ["rpc://127.0.0.1:1", "tap"]
