"""The dashboard's two cookies, which no script reads and no other site sends: who is logged in, and a login at Discord.

Discord's way back is a page of ours that asks for the rest by itself, so both can be strict.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiohttp import web

    from bot.web.security import Site

LOGIN: Final = "roomtone-dashboard"
# Only while a browser is at Discord.
PENDING_LOGIN: Final = "roomtone-login"
PENDING_LOGIN_S: Final = 600


class LoginCookies:
    """Reads and writes the cookies of one site. `site`: returns its address, which decides whether they are secure."""

    def __init__(self, site: Callable[[], Site]) -> None:
        self._site = site

    def read(self, request: web.Request, name: str) -> str:
        """Return a cookie's value; empty: the browser sent none."""
        return request.cookies.get(self._full_name(name), "")

    def write(self, response: web.Response, name: str, value: str, *, max_age: int | None = None) -> None:
        """Have the browser keep a cookie. `max_age`: in seconds; None: until it is closed."""
        response.set_cookie(
            self._full_name(name),
            value,
            max_age=max_age,
            path="/",
            secure=self._is_secure,
            httponly=True,
            samesite="Strict",
        )

    def drop(self, response: web.Response, name: str) -> None:
        """Have the browser delete a cookie."""
        self.write(response, name, "", max_age=0)

    @property
    def _is_secure(self) -> bool:
        return self._site().origin.startswith("https:")

    def _full_name(self, name: str) -> str:
        """Return the cookie's name. One with this prefix cannot be set by another site of the domain (RFC 6265bis).

        It has the port, because browsers share cookies among the ports of a host, where other bots may listen.
        """
        port = urlsplit(self._site().origin).port
        name = name if port is None else f"{name}-{port}"
        return f"__Host-{name}" if self._is_secure else name
