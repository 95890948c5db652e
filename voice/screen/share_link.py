"""Links for sharing a screen: a table of random tokens, each good once.

A token means nothing by itself. The table knows for whom it is and until when; it is kept in memory alone, so a
restarted process accepts no old link. Only digests of tokens are kept.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from enum import StrEnum

from voice.secret_digest import digest_of_secret

_TOKEN_BYTES = 32
_NONCE_BYTES = 16
# Limit for given links; there are never that many in practice. The oldest become invalid first.
MAX_OPEN_LINKS = 1_000


class LinkRefusal(StrEnum):
    """Why a link is not accepted."""

    UNKNOWN = "unknown"
    EXPIRED = "expired"
    USED = "used"


class LinkRefusedError(Exception):
    """A link was not accepted; `reason` says why. The error never contains the token."""

    def __init__(self, reason: LinkRefusal) -> None:
        super().__init__(reason.value)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class LinkClaim:
    """Whom a link is for. `session_id`: the voice session. `expires_at`: UTC epoch seconds."""

    guild_id: int
    user_id: int
    session_id: str
    nonce: str
    expires_at: float


class ShareLinks:
    """The links of one process. Not thread-safe. Callers pass the times in, as UTC epoch seconds."""

    def __init__(self, *, valid_s: float) -> None:
        self._valid_s = valid_s
        # By the digest of the token, oldest first; None once it was used.
        self._given: dict[bytes, LinkClaim | None] = {}

    def give(self, *, guild_id: int, user_id: int, session_id: str, now: float) -> str:
        """Return a new link's token. An earlier unused link of the same person stays valid until it expires."""
        token = secrets.token_urlsafe(_TOKEN_BYTES)
        claim = LinkClaim(guild_id, user_id, session_id, secrets.token_urlsafe(_NONCE_BYTES), now + self._valid_s)
        while len(self._given) >= MAX_OPEN_LINKS:
            del self._given[next(iter(self._given))]
        self._given[digest_of_secret(token)] = claim
        return token

    def redeem(self, token: str, *, now: float) -> LinkClaim:
        """Return whom a link is for. It cannot be used again. Raises `LinkRefusedError`."""
        digest = digest_of_secret(token)
        if digest not in self._given:
            raise LinkRefusedError(LinkRefusal.UNKNOWN)
        if (claim := self._given[digest]) is None:
            raise LinkRefusedError(LinkRefusal.USED)
        if now >= claim.expires_at:
            raise LinkRefusedError(LinkRefusal.EXPIRED)
        self._given[digest] = None
        return claim
