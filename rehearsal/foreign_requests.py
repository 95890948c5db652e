"""Refuses requests to the local servers that a web page may have caused. Pure, and the aiohttp middleware around it.

The servers listen on 127.0.0.1, but a browser on this machine sends them what any page asks it to. Such a request
has the Origin of that page, or the name of a foreign host that was made to resolve to this machine.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from aiohttp import web

_LOOPBACK: Final = "127.0.0.1"
# Whether a server has a page of its own, which may ask it.
HAS_PAGE: Final = web.AppKey("has_page", bool)


def foreign_request(headers: Mapping[str, str], *, address: str = _LOOPBACK, has_page: bool = False) -> str:
    """Return why a request with these headers is refused, a plain sentence; empty if it is not.

    `address`: the IP address at which it came in. `has_page`: the server's own page may ask.
    """
    host = headers.get("Host", "").casefold()
    name, _, port = host.partition(":")
    if name not in {address, "localhost"} or not (port.isdigit() or host == name):
        return f"This server answers only to {address} and localhost. Use the address that was printed."
    if "Origin" in headers and not (has_page and headers["Origin"] == f"http://{host}"):
        return "This server answers no web pages. Send the request with another program, for example curl."
    return ""


@web.middleware
async def refuse_foreign_requests(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Answer a foreign request with status 403."""
    address = _LOOPBACK if request.transport is None else request.transport.get_extra_info("sockname")[0]
    if problem := foreign_request(request.headers, address=address, has_page=request.app.get(HAS_PAGE, False)):
        return web.json_response({"error": problem}, status=403)
    return await handler(request)
