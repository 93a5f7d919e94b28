"""The option that writes what the machines said into the scenarios, so that a change is read as a diff."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite-scenarios", action="store_true", help="write the outcomes into tests/core/scenarios")


@pytest.fixture
def rewrite(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--rewrite-scenarios", default=False))
