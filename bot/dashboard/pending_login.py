"""A login that is at Discord, sealed for the cookie of the browser that began it.

The server keeps nothing of it, so that strangers who begin logins displace nobody's. The cookie is encrypted and
authenticated with a key of this process: after a restart people begin again. That a login cannot be finished twice is
seen to by Discord, which takes a code once, with the verifier that is in this cookie alone.
"""

from __future__ import annotations

import json
import secrets
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final

from nacl.encoding import HexEncoder
from nacl.exceptions import CryptoError
from nacl.secret import SecretBox

if TYPE_CHECKING:
    from collections.abc import Callable

# How long somebody may stay at Discord's page.
VALID_S: Final = 600.0


@dataclass(frozen=True, slots=True)
class PendingLogin:
    """What the way back from Discord is compared with. `verifier`: the secret of PKCE. `until`: monotonic seconds."""

    state: str
    verifier: str
    redirect_uri: str
    until: float


class PendingLoginSeal:
    """Makes and opens the cookies of one process. `monotonic`: returns seconds."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._box = SecretBox(secrets.token_bytes(SecretBox.KEY_SIZE))

    def begin(self, redirect_uri: str) -> tuple[PendingLogin, str]:
        """Return a new login and its cookie."""
        state, verifier = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        pending = PendingLogin(state, verifier, redirect_uri, self._monotonic() + VALID_S)
        # Each has a random nonce of 24 bytes. Cookies may have hexadecimal digits as they are.
        sealed = self._box.encrypt(json.dumps(asdict(pending)).encode(), encoder=HexEncoder)
        return pending, sealed.decode("ascii")

    def open(self, cookie: str) -> PendingLogin | None:
        """Return the login of a cookie; None if it is over, or if this process has not made the cookie."""
        try:
            plain = self._box.decrypt(cookie.encode("ascii"), encoder=HexEncoder)
        except (CryptoError, ValueError):
            return None
        pending = PendingLogin(**json.loads(plain))
        return pending if self._monotonic() < pending.until else None
