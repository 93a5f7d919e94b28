"""Private keys, signed tokens and cookies, whole as files and headers hold them."""

import base64
import textwrap

from tests.redaction.heldout.dice import Dice, Make, Secret, bech32, segment


def pem(label: str, size: int, head: str = "", width: int = 64) -> Make:
    """A private key of this label and size in bytes, as a file holds it; `head` is what every such key begins with."""

    def make(dice: Dice) -> Secret:
        body = head + dice.piece("b64", size, size)
        lines = textwrap.wrap(body, width)
        text = f"-----BEGIN {label}-----\n" + "\n".join(lines) + f"\n-----END {label}-----"
        return Secret(text, key_parts(lines, len(head)))

    return make


def key_parts(lines: list[str], known: int) -> tuple[str, ...]:
    """The random runs of a key's lines: what follows the part that every key begins with."""
    lines = [lines[0][known:], *lines[1:]]
    return tuple(line.rstrip("=") for line in lines if len(line.rstrip("=")) >= 5)


def escaped_pem(dice: Dice) -> Secret:
    """A key on one line with its line ends escaped, as in a service account's file or an environment file."""
    whole = pem("PRIVATE KEY", 1216, "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQ")(dice)
    return Secret(whole.value.replace("\n", "\\n") + "\\n", whole.parts, ("PRIVATE_KEY", "JWT_PRIVATE_KEY"))


def service_account(dice: Dice) -> Secret:
    """The file of a service account of Google Cloud."""
    key = escaped_pem(dice)
    identity = dice.of("x", 40)
    text = (
        f'{{\n  "type": "service_account",\n  "project_id": "{dice.word()}-prod",\n  "private_key_id": "{identity}",\n'
        f'  "private_key": "{key.value}",\n  "client_email": "ci@{dice.word()}-prod.iam.gserviceaccount.com",\n'
        f'  "client_id": "{dice.of("d", 21)}",\n  "token_uri": "https://oauth2.googleapis.com/token"\n}}'
    )
    return Secret(text, key.parts)


def cut_pem(dice: Dice) -> Secret:
    """A key whose end the tool did not show."""
    whole = pem("RSA PRIVATE KEY", 1190, "MIIEpAIBAAKCAQEA")(dice)
    lines = whole.value.split("\n")[: dice.randint(4, 14)]
    return Secret("\n".join(lines), key_parts(lines[1:], 16))


def tail_of_pem(dice: Dice) -> Secret:
    """The last lines of a key, as `tail` shows them."""
    lines = pem("RSA PRIVATE KEY", 1190)(dice).value.split("\n")[-dice.randint(5, 9) :]
    return Secret("$ tail -n 8 server.key\n" + "\n".join(lines), key_parts(["", *lines[:-1]], 0))


def putty(dice: Dice) -> Secret:
    """A key file of PuTTY."""
    public, private = (textwrap.wrap(dice.piece("b64", size, size), 64) for size in (280, 620))
    mac = dice.of("x", 64)
    text = (
        "PuTTY-User-Key-File-3: ssh-rsa\nEncryption: none\nComment: rsa-key-20260811\n"
        f"Public-Lines: {len(public)}\n" + "\n".join(public) + f"\nPrivate-Lines: {len(private)}\n"
        "" + "\n".join(private) + f"\nPrivate-MAC: {mac}"
    )
    return Secret(text, key_parts(private, 0))


def pgp(dice: Dice) -> Secret:
    """An exported key of GnuPG, with the checksum line."""
    lines = textwrap.wrap("lQVYBG" + dice.piece("b64", 900, 900), 64)
    end = "-----END PGP PRIVATE KEY BLOCK-----"
    text = f"-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n{chr(10).join(lines)}\n={dice.of('b', 4)}\n{end}"
    return Secret(text, key_parts(lines, 6))


def age_key(dice: Dice) -> Secret:
    """An identity of age, with a valid checksum."""
    value = bech32("age-secret-key-", dice, 32).upper()
    return Secret(value, (value[16:],), ("AGE_KEY", "SOPS_AGE_KEY"))


def nostr_key(dice: Dice) -> Secret:
    """A secret key of Nostr, with a valid checksum."""
    value = bech32("nsec", dice, 32)
    return Secret(value, (value[5:],), ("NOSTR_SECRET_KEY",))


def wireguard(dice: Dice) -> Secret:
    """The configuration of a WireGuard interface."""
    private, shared = dice.piece("b64", 32, 32), dice.piece("b64", 32, 32)
    text = (
        f"[Interface]\nPrivateKey = {private}\nAddress = 10.8.0.2/32\n\n[Peer]\n"
        f"PublicKey = {dice.piece('b64', 32, 32)}\nPresharedKey = {shared}\nEndpoint = vpn.example.net:51820"
    )
    return Secret(text, (private.rstrip("="), shared.rstrip("=")))


def jwk(dice: Dice) -> Secret:
    """A private key of an elliptic curve as JSON."""
    private = dice.piece("b64u", 32, 32)
    x, y = dice.piece("b64u", 32, 32), dice.piece("b64u", 32, 32)
    return Secret(
        f'{{"kty":"EC","crv":"P-256","x":"{x}","y":"{y}","d":"{private}","use":"sig","alg":"ES256"}}', (private,)
    )


def jwt(algorithm: str, size: int) -> Make:
    """A signed token with claims like those of a login."""

    def make(dice: Dice) -> Secret:
        claims = {
            "sub": dice.guid(),
            "email": f"{dice.word()}@example.com",
            "iat": dice.randint(1_780_000_000, 1_799_999_999),
        }
        signature = dice.piece("b64u", size, size)
        head = segment({"alg": algorithm, "typ": "JWT", "kid": dice.of("x", 8)})
        names = ("ACCESS_TOKEN", "ID_TOKEN", "SUPABASE_SERVICE_ROLE_KEY")
        return Secret(f"{head}.{segment(claims)}.{signature}", (signature,), names)

    return make


def jwe(dice: Dice) -> Secret:
    """An encrypted token: five segments."""
    parts = tuple(dice.piece("b64u", size, size) for size in (256, 12, 180, 16))
    return Secret(".".join((segment({"alg": "RSA-OAEP", "enc": "A256GCM"}), *parts)), parts, ("SESSION_TOKEN",))


def otpauth(dice: Dice) -> Secret:
    """The address in a QR code of a second factor."""
    seed = dice.of("t", 32)
    return Secret(f"otpauth://totp/Acme:{dice.word()}@example.com?secret={seed}&issuer=Acme", (seed,))


def kube_secret_key(dice: Dice) -> Secret:
    """A client key in a kubeconfig: PEM in base64."""
    inner = pem("RSA PRIVATE KEY", 600)(dice).value
    data = base64.b64encode(inner.encode()).decode()
    return Secret(f"users:\n- name: admin\n  user:\n    client-key-data: {data}", (data[44:-48],))


SIGNED: dict[str, Make] = {
    "jwt-hs256": jwt("HS256", 32),
    "jwt-rs256": jwt("RS256", 256),
    "jwt-es256": jwt("ES256", 64),
    "jwe": jwe,
    "age-key": age_key,
    "nostr-key": nostr_key,
    "escaped-private-key": escaped_pem,
}
KEYS: dict[str, Make] = {
    "pem-rsa": pem("RSA PRIVATE KEY", 1190, "MIIEpAIBAAKCAQEA"),
    "pem-ec": pem("EC PRIVATE KEY", 100, "MHcCAQEEI"),
    "pem-pkcs8": pem("PRIVATE KEY", 1216, "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQ"),
    "pem-encrypted": pem("ENCRYPTED PRIVATE KEY", 1290, "MIIFHDBOBgkqhkiG9w0BBQ0wQTApBgkqhkiG9w0BBQwwHAQI"),
    "pem-ed25519": pem("PRIVATE KEY", 32, "MC4CAQAwBQYDK2VwBCIEI"),
    "openssh-key": pem("OPENSSH PRIVATE KEY", 320, "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAA", 70),
    "pem-cut": cut_pem,
    "pem-tail": tail_of_pem,
    "putty-key": putty,
    "pgp-key": pgp,
    "gcp-service-account": service_account,
    "wireguard-config": wireguard,
    "jwk-private": jwk,
    "otpauth-url": otpauth,
    "kubeconfig-client-key": kube_secret_key,
}
