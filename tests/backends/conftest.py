"""Says which backends are missing: a test that needs one is left out then, and CI has them all (`make backends`)."""

from tests.backends import install


def pytest_report_header() -> str:
    """Name what is missing."""
    missing = [name for name in install.NAMES if install.present(name) is None]
    return f"backends that are missing (make backends): {', '.join(missing) or 'none'}"
