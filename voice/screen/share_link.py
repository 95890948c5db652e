"""Links for sharing a screen. They are signed and valid once, and give a secret to resume a broken connection.

A link's token names the person and the time at which the link expires. The token is signed, so nobody else can create
or change one. Redeeming a link uses it up and returns a resume secret, which only the page that redeemed it knows. Keys
and secrets exist only in memory, so a restarted process accepts no old link.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import secrets
from dataclasses import dataclass
from enum import StrEnum

from voice.secret_digest import digest_of_secret

# A token has about 200 characters. Longer ones are refused without reading them.
MAX_TOKEN_CHARS = 600
# HMAC-SHA256 gains nothing from keys that are longer than its output.
KEY_BYTES = 32
_NONCE_BYTES = 16
_SECRET_BYTES = 32
# Limit for open links and for redeemed links; there are never that many in practice. The oldest ones become invalid
# first.
MAX_OPEN_LINKS = 1_000


class LinkRefusal(StrEnum):
    """Why a link or a resume secret is not accepted."""

    MALFORMED = "malformed"
    FORGED = "forged"
    EXPIRED = "expired"
    USED = "used"
    # The share is over, or the process has been restarted.
    ENDED = "ended"


class LinkRefusedError(Exception):
    """A link or resume secret was not accepted; `reason` says why. The error never contains the token."""

    def __init__(self, reason: LinkRefusal) -> None:
        super().__init__(reason.value)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class LinkClaim:
    """The content of a link. `session_id`: the voice session. `expires_at`: UTC epoch seconds."""

    guild_id: int
    user_id: int
    session_id: str
    nonce: str
    expires_at: float


@dataclass(frozen=True, slots=True)
class LinkAdmission:
    """A redeemed link. `resume_secret` lets the page reconnect and must not be shown to anybody else."""

    claim: LinkClaim
    resume_secret: str


def new_key() -> bytes:
    """Return a new signing key for one process."""
    return secrets.token_bytes(KEY_BYTES)


def sign_claim(claim: LinkClaim, key: bytes) -> str:
    """Return the signed token for `claim`, usable in a URL's fragment."""
    said = [claim.guild_id, claim.user_id, claim.session_id, claim.nonce, claim.expires_at]
    body = json.dumps(said, separators=(",", ":")).encode()
    return f"{_armoured(body)}.{_armoured(_mac(body, key))}"


def verify_token(token: str, key: bytes, *, now: float) -> LinkClaim:
    """Return the content of a token. `now`: UTC epoch seconds. Raises `LinkRefusedError`. The signature is checked
    first.
    """
    if len(token) > MAX_TOKEN_CHARS or token.count(".") != 1:
        raise LinkRefusedError(LinkRefusal.MALFORMED)
    body, mac = (_bare(part) for part in token.split("."))
    if not hmac.compare_digest(mac, _mac(body, key)):
        raise LinkRefusedError(LinkRefusal.FORGED)
    try:
        claim = LinkClaim(*json.loads(body))
    except (ValueError, TypeError) as error:
        # Signed by us but unreadable: the token comes from another version.
        raise LinkRefusedError(LinkRefusal.MALFORMED) from error
    if now >= claim.expires_at:
        raise LinkRefusedError(LinkRefusal.EXPIRED)
    return claim


class ShareLinks:
    """The links of one process, both open and redeemed. Not thread-safe.

    Callers pass the times in, as UTC epoch seconds.
    """

    def __init__(self, key: bytes, *, valid_s: float) -> None:
        self._key = key
        self._valid_s = valid_s
        # Nonce -> expiry time of each link that has not been redeemed yet, oldest first.
        self._open: dict[str, float] = {}
        # Hash of a resume secret -> its link's content. The secrets themselves are not kept.
        self._admitted: dict[bytes, LinkClaim] = {}

    def give(self, *, guild_id: int, user_id: int, session_id: str, now: float) -> str:
        """Return a new link's token. An earlier unused link of the same person stays valid until it expires."""
        claim = LinkClaim(guild_id, user_id, session_id, secrets.token_urlsafe(_NONCE_BYTES), now + self._valid_s)
        self._forget_expired(now)
        while len(self._open) >= MAX_OPEN_LINKS:
            del self._open[next(iter(self._open))]
        self._open[claim.nonce] = claim.expires_at
        return sign_claim(claim, self._key)

    def redeem(self, token: str, *, now: float) -> LinkAdmission:
        """Redeem a link, which then cannot be used again. Raises `LinkRefusedError`."""
        claim = verify_token(token, self._key, now=now)
        if self._open.pop(claim.nonce, None) is None:
            raise LinkRefusedError(LinkRefusal.USED)
        secret = secrets.token_urlsafe(_SECRET_BYTES)
        while len(self._admitted) >= MAX_OPEN_LINKS:
            del self._admitted[next(iter(self._admitted))]
        self._admitted[digest_of_secret(secret)] = claim
        return LinkAdmission(claim, secret)

    def resume(self, secret: str) -> LinkClaim:
        """Return the content of the link that this resume secret belongs to. Raises `LinkRefusedError`."""
        claim = self._admitted.get(digest_of_secret(secret)) if len(secret) <= MAX_TOKEN_CHARS else None
        if claim is None:
            raise LinkRefusedError(LinkRefusal.ENDED)
        return claim

    def end(self, nonce: str) -> None:
        """End the share of the link with this nonce, so that nobody can resume it."""
        for digest in [digest for digest, claim in self._admitted.items() if claim.nonce == nonce]:
            del self._admitted[digest]

    def _forget_expired(self, now: float) -> None:
        for nonce in [nonce for nonce, expires_at in self._open.items() if now >= expires_at]:
            del self._open[nonce]


def _mac(body: bytes, key: bytes) -> bytes:
    return hmac.new(key, body, hashlib.sha256).digest()


def _armoured(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _bare(armoured: str) -> bytes:
    try:
        return base64.b64decode(armoured + "=" * (-len(armoured) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise LinkRefusedError(LinkRefusal.MALFORMED) from error
