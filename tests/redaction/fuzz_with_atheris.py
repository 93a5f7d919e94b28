"""`python -m tests.redaction.fuzz_with_atheris [CORPUS_DIR] [libFuzzer's options]` looks for what breaks redaction.

It needs atheris and Hyperscan installed, ends at the first thing it finds, and leaves the bytes that lead there in a
file; given that file instead of a directory, it shows it again.
"""

import sys

import atheris  # type: ignore[import-untyped]

with atheris.instrument_imports(include=["redaction"]):
    from redaction.engine import Engine
    from tests.redaction.fuzz import FromBytes, check_all


def main() -> None:
    """Never returns: the fuzzer ends the process."""
    engine = Engine(b"a key of the fuzzer")
    atheris.Setup(sys.argv, lambda data: check_all(engine, FromBytes(data)))
    atheris.Fuzz()


if __name__ == "__main__":
    main()
