"""Certificates for tests, made by openssl: an authority, a client's, a server's for this machine and for mc.test."""

import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Certificates:
    """Files in PEM form. `other` is an authority that has signed none of them."""

    authority: Path
    other: Path
    server: Path
    server_key: Path
    client: Path
    client_key: Path
    locked_key: Path
    """The client's key behind a password."""


def make_certificates(folder: Path) -> Certificates:
    """Make them in a folder."""
    for name in ("authority", "other"):
        _openssl(
            folder, "req", "-x509", *_new_key(name), "-out", f"{name}.pem", "-subj", f"/CN={name}", "-days", "2",
            "-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign",
        )  # fmt: skip
    for name in ("server", "client"):
        _openssl(folder, "req", *_new_key(name), "-out", f"{name}.csr", "-subj", f"/CN={name}")
        (folder / "extensions").write_text("subjectAltName=IP:127.0.0.1,DNS:localhost,DNS:mc.test,IP:2001:db8::1\n")
        _openssl(
            folder, "x509", "-req", "-in", f"{name}.csr",
            "-CA", "authority.pem", "-CAkey", "authority.key", "-days", "2",
            "-CAcreateserial", "-extfile", "extensions", "-out", f"{name}.pem",
        )  # fmt: skip
    _openssl(folder, "ec", "-in", "client.key", "-aes256", "-passout", "pass:secret", "-out", "locked.key")
    return Certificates(*(folder / name for name in (
        "authority.pem", "other.pem", "server.pem", "server.key", "client.pem", "client.key", "locked.key"
    )))  # fmt: skip


def make_self_signed(folder: Path) -> tuple[Path, Path]:
    """Make a certificate for 127.0.0.1 that nobody but itself has signed; returns it and its key."""
    _openssl(
        folder, "req", "-x509", *_new_key("own"), "-out", "own.pem", "-subj", "/CN=own", "-days", "2",
        "-addext", "subjectAltName=IP:127.0.0.1",
    )  # fmt: skip
    return folder / "own.pem", folder / "own.key"


def _new_key(name: str) -> tuple[str, ...]:
    return ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", f"{name}.key")


def _openssl(folder: Path, *arguments: str) -> None:
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True, timeout=30)
