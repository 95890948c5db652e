"""What is kept of a secret that somebody else has, such as a cookie: enough to know it again, and not to use it."""

from __future__ import annotations

import hashlib


def digest_of_secret(secret: str) -> bytes:
    """Return the digest of a long random secret. What a page sends may be any text, also half a character."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).digest()
