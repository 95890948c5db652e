"""Refuses requests that a page of another site makes. Browsers name the site in the header `Origin`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiohttp import web

from bot.web.refusals import WebRefusal

if TYPE_CHECKING:
    from collections.abc import Callable

    from bot.web.security import Site


def require_own_origin(request: web.Request, site: Site, count: Callable[[str], None]) -> None:
    """Raise `HTTPForbidden`, and `count` the refusal, unless a page of `site` sends this request."""
    if not site.admits(request.headers.get("Origin")):
        count(WebRefusal.FOREIGN_PAGE)
        raise web.HTTPForbidden(text="This page may not talk to me: its address is not web.public_url.")
