"""Refuses requests that a page of another site makes. Browsers name the site in the header `Origin`."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

from aiohttp import web

from bot.texts.text import Text
from bot.web.page_language import json_response
from bot.web.refusals import WebRefusal

if TYPE_CHECKING:
    from collections.abc import Callable

    from bot.web.security import Site


def require_own_origin(request: web.Request, site: Site, count: Callable[[str], None]) -> None:
    """Raise `HTTPForbidden`, and `count` the refusal, unless a page of `site` sends this request.

    The answer says which address works: whoever forwards a port or uses another name of the machine reads it.
    """
    if not site.admits(request.headers.get("Origin")):
        count(WebRefusal.FOREIGN_PAGE)
        sentence = Text(
            "My pages work under {origin} only. Open this page there, or set PUBLIC_URL to the address that your "
            "browser shows.",
            origin=site.origin,
        )
        answer = json_response(request, {"error": sentence}, HTTPStatus.FORBIDDEN)
        raise web.HTTPForbidden(text=answer.text, content_type=answer.content_type)
