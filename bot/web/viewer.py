"""Who looks at the dashboard, and for how long: login links and logged-in browsers. Pure, with bounds on everything.

A login link works once and makes its browser the operator's. Browsers are known by the secret in their cookie, of which
only the digest is kept here.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from voice.secret_digest import digest_of_secret

if TYPE_CHECKING:
    from collections.abc import Callable

# More browsers than the people who run one bot have, and more than one person uses. Beyond it the browser that was
# silent for longest is logged out: of all, or of that person.
MAX_LOGINS: Final = 64
MAX_LOGINS_OF_ONE_PERSON: Final = 8
# A browser stays logged in overnight, and never longer than a week.
IDLE_S: Final = 24 * 3_600.0
LONGEST_S: Final = 7 * 24 * 3_600.0


@dataclass(frozen=True, slots=True)
class Viewer:
    """Somebody who looks at the dashboard. `user_id`: theirs on Discord, by which people are told apart; None: the
    operator, who used a login link.
    """

    name: str
    user_id: int | None = None

    @property
    def is_operator(self) -> bool:
        return self.user_id is None


OPERATOR: Final = Viewer("Operator")


@dataclass(slots=True)
class _Login:
    viewer: Viewer
    since: float
    seen: float


class Logins:
    """The present login link and the browsers that are logged in. Not thread-safe.

    `monotonic`: returns seconds. `on_new_link`: called when the link was used up and there is another one.
    """

    def __init__(self, monotonic: Callable[[], float], *, on_new_link: Callable[[], None] = lambda: None) -> None:
        self._monotonic = monotonic
        self._on_new_link = on_new_link
        self._token = _new_secret()
        # By digest of the cookie, the browser that was silent for longest first.
        self._logins: dict[bytes, _Login] = {}

    @property
    def link_token(self) -> str:
        """Return the secret of the login link that works now."""
        return self._token

    def redeem(self, token: str, *, instead_of: str = "") -> str | None:
        """Use the login link up. Returns the cookie of an operator's browser, or None if the link does not work.

        `instead_of`: the browser's former cookie, which is good for nothing then.
        """
        if not secrets.compare_digest(digest_of_secret(token), digest_of_secret(self._token)):
            return None
        self._token = _new_secret()
        cookie = self.log_in(OPERATOR, instead_of=instead_of)
        self._on_new_link()
        return cookie

    def log_in(self, viewer: Viewer, *, instead_of: str = "") -> str:
        """Log a browser in and return its cookie. `instead_of`: see `redeem`."""
        now = self._monotonic()
        self.log_out(instead_of)
        self._drop_old(now)
        own = [key for key, login in self._logins.items() if login.viewer.user_id == viewer.user_id]
        for key in own[: max(0, len(own) + 1 - MAX_LOGINS_OF_ONE_PERSON)]:
            del self._logins[key]
        while len(self._logins) >= MAX_LOGINS:
            del self._logins[next(iter(self._logins))]
        cookie = _new_secret()
        self._logins[digest_of_secret(cookie)] = _Login(viewer, now, now)
        return cookie

    def viewer(self, cookie: str | None) -> Viewer | None:
        """Return who is logged in with this cookie, if anybody."""
        now = self._monotonic()
        self._drop_old(now)
        key = digest_of_secret(cookie or "")
        login = self._logins.pop(key, None)
        if login is None:
            return None
        login.seen = now
        self._logins[key] = login
        return login.viewer

    def log_out(self, cookie: str | None) -> None:
        self._logins.pop(digest_of_secret(cookie or ""), None)

    def _drop_old(self, now: float) -> None:
        self._logins = {
            key: login
            for key, login in self._logins.items()
            if now - login.seen < IDLE_S and now - login.since < LONGEST_S
        }


def _new_secret() -> str:
    return secrets.token_urlsafe(32)
