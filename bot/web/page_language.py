"""The language of the page that asks, and what the server answers in it: its files and JSON."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from aiohttp import web

from bot.texts.text import all_in_language
from bot.web.page_texts import LANGUAGE_COOKIE, chosen_language, page_file, texts_module

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from bot.web.dashboard_port import Json

# Shared by all pages.
TEXT_SCRIPT: Final = "/page/text.js"
TEXTS_SCRIPT: Final = "/page/texts.js"


def page_language(request: web.BaseRequest) -> str:
    """Return the language in which the page wants its texts: the chosen one, or the browser's."""
    return chosen_language(request.cookies.get(LANGUAGE_COOKIE), request.headers.get("Accept-Language"))


def json_response(request: web.Request, body: Json, status: int = HTTPStatus.OK) -> web.Response:
    """Return JSON whose `Text`s are in the page's language."""
    return web.json_response(all_in_language(body, page_language(request)), status=status)


def file_handler(name: str, kind: str) -> Callable[[web.Request], Awaitable[web.Response]]:
    """Return the handler that serves a file of the pages."""

    async def handle(request: web.Request) -> web.Response:
        return web.Response(body=page_file(name, page_language(request)), content_type=kind, charset="utf-8")

    return handle


async def serve_texts(request: web.Request) -> web.Response:
    """Serve the script with the translations."""
    return web.Response(body=texts_module(page_language(request)), content_type="text/javascript", charset="utf-8")
