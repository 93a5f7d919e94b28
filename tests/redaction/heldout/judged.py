"""Findings in this machine's files that a person judged to be right: the value is a key or a password."""

import hashlib

TRUE = {
    "456a51b1f1b3cf3e": "Google Cloud CLI: client secret in its source",
    "f0386f9be1fe905f": "Google Cloud CLI: client secret in its source",
    "486743a2eab4395e": "Google Cloud CLI: client secret in its source",
}


def digest(flagged: str) -> str:
    """What a flagged text is known by here: nothing of it can be told from this."""
    return hashlib.sha256(flagged.strip("\"'`").encode()).hexdigest()[:16]
