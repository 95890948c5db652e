"""The pages in the reader's language: which one it is, the HTML in it, and the sentences that the scripts use.

English stands in the HTML and, in calls of `t`, `counted` and `around`, in the scripts. The catalogue translates it
(`bot.texts`). Texts of an element with `translate="no"` stay as they are.
"""

from __future__ import annotations

import json
import re
from functools import cache
from html import escape
from html.parser import HTMLParser
from http import HTTPStatus
from importlib import resources
from typing import TYPE_CHECKING, Final

from aiohttp import web

from bot.texts.text import ENGLISH, all_in_language, catalogue, languages

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping

    from bot.dashboard.access import Json

# Shared by all pages.
TEXT_SCRIPT: Final = "/page/text.js"
TEXTS_SCRIPT: Final = "/page/texts.js"

# Says nothing but a language, and is set only when somebody chooses one.
LANGUAGE_COOKIE: Final = "roomtone-language"
# Attributes that people read or hear.
_READ: Final = frozenset({"alt", "aria-label", "placeholder", "title"})
_EMPTY: Final = frozenset({"input", "link", "meta"})
_STRING: Final = r'"((?:[^"\\\n]|\\.)*)"'
# The first argument of `t` and `around`; the second and the third one of `counted`.
_ONE: Final = re.compile(rf"\b(?:t|around)\(\s*{_STRING}")
_COUNTED: Final = re.compile(rf"\bcounted\([^;\"]*?,\s*{_STRING},\s*{_STRING}")


def chosen_language(cookie: str | None, accepted: str | None) -> str:
    """Return the language of a page. `cookie`: what somebody chose; `accepted`: their browser's Accept-Language."""
    if cookie in languages():
        return str(cookie)
    known = {each.casefold(): each for each in languages()}
    # Every browser names first what is wanted most, so the weights behind the names say nothing more.
    ranges = [each.partition(";")[0].strip().casefold() for each in (accepted or "")[:500].split(",")]
    wanted = (code for each in ranges for code in (each, each.partition("-")[0]))
    return next((known[code] for code in wanted if code in known), ENGLISH)


@cache
def page_file(name: str, language: str) -> bytes:
    """Return a file of the pages in a language. Only HTML differs."""
    content = (resources.files("bot.web") / "static" / name).read_bytes()
    if not name.endswith(".html"):
        return content
    return page_in(content.decode(), language, catalogue(language).texts).encode()


def page_in(html: str, language: str, known: Mapping[str, str]) -> str:
    """Return a page with its texts translated, as far as they are `known`, and its language marked."""
    page = _Page(language, known)
    page.feed(html)
    page.close()
    return "".join(page.made)


def texts_of_script(script: str) -> Iterator[str]:
    """Yield the English sentences of a script, also those that a language has no line for."""
    for match in (*_ONE.finditer(script), *_COUNTED.finditer(script)):
        yield from (json.loads(f'"{text}"') for text in match.groups())


@cache
def texts_module(language: str) -> bytes:
    """Return the script with the translations of all sentences that the scripts use."""
    known = catalogue(language).texts
    folder = resources.files("bot.web") / "static"
    scripts = [file.read_text("utf-8") for file in folder.iterdir() if file.name.endswith(".js")]
    used = sorted({text for script in scripts for text in texts_of_script(script)} & set(known))
    parts = {"LANGUAGE": language, "LANGUAGES": languages(), "TEXTS": {text: known[text] for text in used}}
    lines = [f"export const {name} = {json.dumps(value, ensure_ascii=False)};\n" for name, value in parts.items()]
    return "".join(lines).encode()


class _Page(HTMLParser):
    """Writes a page again with its texts translated."""

    def __init__(self, language: str, known: Mapping[str, str]) -> None:
        super().__init__(convert_charrefs=True)
        self.made: list[str] = []
        self._language = language
        self._known = known
        # The open elements, and whether their texts are translated.
        self._open: list[bool] = [True]

    def handle_decl(self, decl: str) -> None:
        self.made.append(f"<!{decl}>")

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        translates = self._open[-1] and ("translate", "no") not in attrs
        self.made.append(f"<{tag}{''.join(self._attribute(tag, *each, translates) for each in attrs)}>")
        if tag not in _EMPTY:
            self._open.append(translates)

    def handle_endtag(self, tag: str) -> None:
        self.made.append(f"</{tag}>")
        self._open.pop()

    def handle_data(self, data: str) -> None:
        text = " ".join(data.split())
        if self._open[-1] and any(letter.isalpha() for letter in text):
            start, end = data[: len(data) - len(data.lstrip())], data[len(data.rstrip()) :]
            data = start + self._known.get(text, text) + end
        self.made.append(escape(data, quote=False))

    def _attribute(self, tag: str, name: str, value: str | None, translates: bool) -> str:
        if value is None:
            return f" {name}"
        if tag == "html" and name == "lang":
            value = self._language
        elif name in _READ and translates:
            text = " ".join(value.split())
            value = self._known.get(text, text)
        return f' {name}="{escape(value)}"'


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
