"""Cases on disk: one SQLite file per output, which keeps equal contents once."""

import hashlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal, TypeAlias

import zstandard

Kind: TypeAlias = Literal["bytes", "text", "facts"]
"""How a case is compared: as it is, or with the words of `words.toml` replaced on the side of before."""
NAME: Final = "golden.db"


class Goldens:
    """The cases of one output directory. A name is used once per group."""

    def __init__(self, directory: Path, *, fresh: bool = False) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.path = directory / NAME
        if fresh:
            self.path.unlink(missing_ok=True)
        elif not self.path.is_file():
            raise FileNotFoundError(f"{self.path}: `write` makes it")
        self._database = sqlite3.connect(self.path, isolation_level=None)
        self._database.execute("PRAGMA synchronous=OFF")
        self._database.executescript(
            """
            CREATE TABLE IF NOT EXISTS cases (
                "group" TEXT, name TEXT, kind TEXT, hash BLOB, PRIMARY KEY ("group", name)
            );
            CREATE TABLE IF NOT EXISTS contents (hash BLOB PRIMARY KEY, content BLOB);
            """
        )

    def put(self, group: str, name: str, content: bytes, kind: Kind = "bytes") -> None:
        """Keep a case; one that is there already is an error of this tool."""
        digest = hashlib.sha256(content).digest()
        if self._database.execute("SELECT 1 FROM contents WHERE hash = ?", (digest,)).fetchone() is None:
            packed = zstandard.ZstdCompressor(level=3).compress(content)
            self._database.execute("INSERT INTO contents VALUES (?, ?)", (digest, packed))
        self._database.execute("INSERT INTO cases VALUES (?, ?, ?, ?)", (group, name, kind, digest))

    def groups(self) -> list[str]:
        """The groups that have cases."""
        return [row[0] for row in self._database.execute('SELECT DISTINCT "group" FROM cases ORDER BY 1')]

    def cases(self, group: str) -> dict[str, tuple[Kind, bytes]]:
        """The kind and the hash of every case of a group, by name."""
        rows = self._database.execute('SELECT name, kind, hash FROM cases WHERE "group" = ? ORDER BY rowid', (group,))
        return {name: (kind, digest) for name, kind, digest in rows}

    def content(self, digest: bytes) -> bytes:
        """The content that has this hash."""
        [packed] = self._database.execute("SELECT content FROM contents WHERE hash = ?", (digest,)).fetchone()
        return zstandard.ZstdDecompressor().decompress(packed)

    def counts(self) -> Iterator[tuple[str, int]]:
        """How many cases each group has."""
        for group in self.groups():
            yield group, len(self.cases(group))

    def close(self) -> None:
        """Close the file."""
        self._database.close()
