"""What an engine with a cache never does: import detect-secrets, or anything else, while it reads a line."""

import subprocess
import sys
from pathlib import Path

from tests.shared import CACHE

ROOT = Path(__file__).parents[2]
PROGRAM = """
import sys
from pathlib import Path
from redaction.engine import Engine
engine = Engine(b"k" * 32, cache_dir=Path(sys.argv[1]))
before = set(sys.modules)
patterns = sys.modules["redaction.rules.detectors"]._linear.cache_info
tried = patterns().misses
found = engine.redact(b'{"a":"cl_key = aaaaaaaaaaaaaaaaaaaaaaaa", "b": "sl_key = ' + b"a" * 64 + b'"}', 1e4)
print(patterns().misses > tried, sorted(set(sys.modules) - before), "detect_secrets" in sys.modules)
"""


def test_a_line_that_detect_secrets_looks_at_imports_nothing() -> None:
    for _ in range(2):  # the first one fills the cache
        answer = subprocess.run(
            [sys.executable, "-c", PROGRAM, str(CACHE)], cwd=ROOT, capture_output=True, text=True, check=True
        )

    assert answer.stdout.strip() == "True [] False"
