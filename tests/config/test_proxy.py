"""Which proxy the environment and the settings name for an address."""

import pytest

from config.errors import ConfigError
from config.proxy import password_of, proxy_for

PROXY = "http://proxy.example.com:3128"
OTHER = "http://other.example.com:80"
URL = "https://mc.example.com/agents"


@pytest.mark.parametrize(
    ("url", "environ", "expected"),
    [
        pytest.param(URL, {}, None, id="nothing is set"),
        pytest.param(URL, {"HTTPS_PROXY": PROXY}, (PROXY, "HTTPS_PROXY"), id="capitals"),
        pytest.param(URL, {"https_proxy": PROXY, "HTTPS_PROXY": OTHER}, (PROXY, "https_proxy"), id="small letters win"),
        pytest.param(URL, {"HTTP_PROXY": PROXY}, None, id="of the other scheme"),
        pytest.param("http://mc.example.com", {"HTTP_PROXY": PROXY}, (PROXY, "HTTP_PROXY"), id="plain HTTP"),
        pytest.param(URL, {"ALL_PROXY": PROXY}, (PROXY, "ALL_PROXY"), id="of all schemes"),
        pytest.param(
            URL, {"ALL_PROXY": OTHER, "HTTPS_PROXY": PROXY}, (PROXY, "HTTPS_PROXY"), id="the scheme's own wins"
        ),
        pytest.param(
            URL, {"HTTPS_PROXY": "proxy.example.com:3128/"}, (PROXY, "HTTPS_PROXY"), id="an address without a scheme"
        ),
        pytest.param("https://127.0.0.1:8411", {"HTTPS_PROXY": PROXY}, None, id="loopback"),
        pytest.param("https://[::1]:8411", {"ALL_PROXY": PROXY}, None, id="loopback of version 6"),
        pytest.param("https://localhost", {"ALL_PROXY": PROXY}, None, id="localhost"),
    ],
)
def test_the_environment_names_a_proxy(url: str, environ: dict[str, str], expected: tuple[str, str] | None) -> None:
    assert proxy_for("env", url, environ) == expected


@pytest.mark.parametrize(
    ("exceptions", "url", "excepted"),
    [
        ("*", URL, True),
        ("mc.example.com", URL, True),
        ("example.com", URL, True),
        (".example.com", URL, True),
        ("*.example.com", URL, True),
        ("other.org, MC.example.com", URL, True),
        ("other.org MC.example.com", URL, True),
        ("ample.com", URL, False),
        ("mc.example.com:443", URL, True),
        ("mc.example.com:8443", URL, False),
        ("mc.example.com:8443", "https://mc.example.com:8443", True),
        ("10.0.0.0/8", "https://10.1.2.3", True),
        ("10.0.0.0/8", "https://11.1.2.3", False),
        ("10.1.2.3", "https://10.1.2.3:9", True),
        ("10.1.2.3:9", "https://10.1.2.3:9", True),
        ("10.1.2.3:8", "https://10.1.2.3:9", False),
        ("2001:db8::/32", "https://[2001:db8::1]", True),
        ("[2001:db8::1]:443", "https://[2001:db8::1]", True),
        ("[2001:db8::1]:444", "https://[2001:db8::1]", False),
        ("", URL, False),
        (" , ,", URL, False),
        (".", URL, False),
    ],
)
def test_no_proxy_excepts_hosts_domains_networks_and_ports(exceptions: str, url: str, excepted: bool) -> None:
    for variable in ("no_proxy", "NO_PROXY"):
        found = proxy_for("env", url, {"HTTPS_PROXY": PROXY, variable: exceptions})

        assert (found is None) == excepted


def test_the_settings_win_over_the_environment() -> None:
    environ = {"HTTPS_PROXY": OTHER, "NO_PROXY": "*"}

    assert proxy_for("none", URL, environ) is None
    assert proxy_for(PROXY, URL, environ) == (PROXY, "the settings")
    assert proxy_for(PROXY, "https://127.0.0.1", environ) is None


def test_a_proxy_of_another_kind_is_an_error_that_names_the_variable_and_no_password() -> None:
    with pytest.raises(ConfigError) as raised:
        proxy_for("env", URL, {"ALL_PROXY": "socks5://me:secret-word@proxy.example.com"})

    assert "ALL_PROXY" in str(raised.value)
    assert "secret-word" not in str(raised.value)
    assert 'proxy = "none"' in raised.value.hint


def test_the_password_of_a_proxy_is_known_in_both_spellings() -> None:
    assert password_of("http://me:p%40ss-word@proxy.example.com", URL) == ("p%40ss-word", "p@ss-word")
    assert password_of(PROXY, URL) == ()
