"""What is imported before helpers of a backfill are forked."""

import subprocess
import sys

from exporter.wiring.assembly import OF_EVERY_HELPER


def test_what_helpers_share_is_safe_to_fork_beside() -> None:
    program = (
        f"import importlib, sys, threading; [importlib.import_module(name) for name in {OF_EVERY_HELPER}]\n"
        "print('grpc' in sys.modules, threading.active_count())"
    )

    ran = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)

    assert ran.stdout.split() == ["False", "1"]
