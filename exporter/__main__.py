"""The entry of `exporter` and `python -m exporter`: makes sure our own packages are found first, then hands over.

Nothing of ours is imported above `guard_imports`: a `config.py` in the directory a person happens to be in, together
with `PYTHONPATH=.`, would otherwise be taken for our package of that name.
"""

import os
import sys

INTERRUPTED = 130  # 128 + SIGINT, as shells report it.


def guard_imports() -> None:
    """Puts the directory that holds this package first on `sys.path`: its siblings are found before any namesake."""
    ours = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120 - pathlib costs 5 ms
    if sys.path[:1] != [ours]:
        sys.path.insert(0, ours)


def main() -> int:
    """Runs the command line of this process and returns its exit code, at Ctrl-C too, however early it comes."""
    try:
        return _main()
    except KeyboardInterrupt:
        return INTERRUPTED


def _main() -> int:
    guard_imports()
    if sys.argv[1:] in (["--version"], ["-V"]):  # Answered here: a prompt or a script asks often, and should not wait.
        from exporter.version import VERSION

        sys.stdout.write(f"exporter {VERSION}\n")
        return 0
    import gc

    from exporter.cli.main import run

    # What we make by the thousand goes when it is no more used; to look for cycles among it costs a tenth of the time.
    gc.set_threshold(50_000, 20, 20)
    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
