"""Users' rules are tried before they are used, and a bad one is refused by its name."""

from pathlib import Path

import pytest

from redaction.engine import CLEAN, Engine, Masked
from redaction.errors import RuleError
from redaction.rules.examples import expanded
from tests.redaction.events import event
from tests.shared import CACHE

ROW = """
version = "7"

[[format]]
id = "acme-deploy-key"
provider = "Acme"
name = "deploy key"
pattern = 'acme_[0-9a-z]{32}'
example = "acme_<base36:32>"
counter = "acme_<base36:12>"
source = "intranet"
"""


def rules(tmp_path: Path, content: str) -> Path:
    """A rule file with this content."""
    path = tmp_path / "mine.toml"
    path.write_text(content, encoding="utf-8")
    return path


@pytest.mark.slow
def test_a_rule_of_ones_own_masks(tmp_path: Path) -> None:
    key = expanded("acme_<base36:32>", "x")
    engine = Engine(rule_files=[rules(tmp_path, ROW)])

    result = engine.redact(event(f"deploy with {key} now"), 1000)

    assert isinstance(result, Masked)
    assert result.rules == ("acme-deploy-key",)
    assert key not in result.line.decode()
    assert "mine.toml 7" in engine.version
    assert Engine(cache_dir=CACHE).redact(event(f"deploy with {key} now"), 1000) is CLEAN


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("acme_[0-9a-z]{32}", "acme_[0-9a-z]{64}", "does not find its example"),
        ("acme_<base36:12>", "acme_<base36:48>", "finds its counter example"),
        ("acme_[0-9a-z]{32}", "[0-9a-z]{0,32}", "empty text"),
        ("acme_[0-9a-z]{32}", "acme_(", "not closed"),
        ("acme_[0-9a-z]{32}", "(?:a{1,9}){1,99}b", "varying count"),
        ("acme_[0-9a-z]{32}", "[0-9a-z_]{1,2000}[0-9a-z_]{1,2000}[0-9a-z_]{1,2000}_[0-9a-z]{32}", ""),
        ("acme_<base36:32>", "acme_<base99:32>", "no alphabet is called base99"),
        ("acme-deploy-key", "private-key", "already a rule"),
    ],
)
@pytest.mark.slow
def test_a_bad_rule_is_refused_with_file_name_and_reason(tmp_path: Path, old: str, new: str, reason: str) -> None:
    with pytest.raises(RuleError, match=r"mine\.toml: rule [a-z-]+: ") as refused:
        Engine(rule_files=[rules(tmp_path, ROW.replace(old, new, 1))])
    assert reason in str(refused.value)
