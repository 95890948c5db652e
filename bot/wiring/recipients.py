"""Who besides Discord gets a part of the conversation, read from the settings. The bot's notice names them."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from bot.posts.notice import Recipient
from bot.store.database import hosts_of_database
from bot.texts.text import Text
from voice.endpoint_settings import address, is_this_machine

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bot.wiring.settings import BotSettings

SOUND = Text("the sound of your voices")
WORDS = Text("the text of what you say")
ANSWERS = Text("the text of my answers")
# A question about a screen goes with its picture.
LOOKS = Text("pictures of shared screens, and questions about them")
TOOL_QUESTIONS = Text("the questions that I send to my tools")


def recipients(settings: BotSettings) -> tuple[Recipient, ...]:
    """Return everybody on another machine who gets a part of the conversation with these settings."""
    return tuple(found for found in _all_recipients(settings) if not is_this_machine(found.host))


def remote_database_hosts(settings: BotSettings) -> tuple[str, ...]:
    """Return the other machines that have the bot's database: none, or one, or all that its URL names."""
    url = settings.storage.database_url
    return () if url is None else tuple(host for host in hosts_of_database(url) if not is_this_machine(host))


def _all_recipients(settings: BotSettings) -> Iterator[Recipient]:
    for host in remote_database_hosts(settings):
        yield Recipient(WORDS, host, Text("stores it in my database"))
    if settings.speech_to_speech:
        for what in (SOUND, WORDS):
            yield Recipient(
                what, _host(settings.realtime.base_url), Text("talks with you ({model})", model=settings.realtime.model)
            )
    if settings.asr.by_endpoint:
        yield Recipient(
            SOUND,
            _host(settings.asr.base_url),
            Text("turns speech into text ({model})", model=settings.asr.endpoint_model),
        )
    if settings.llm.configured:
        for llm in (settings.llm, *settings.llm.fallbacks()):
            yield Recipient(WORDS, _host(llm.base_url), Text("writes my answers ({model})", model=llm.model))
    if settings.recall.base_url:
        yield Recipient(
            WORDS, _host(settings.recall.base_url), Text("helps me to search ({model})", model=settings.recall.model)
        )
    if settings.speaking.sent_to is not None:
        yield Recipient(
            ANSWERS,
            _host(settings.speaking.sent_to),
            Text("says my answers aloud ({model})", model=settings.speaking.model),
        )
    if settings.speaking.moderation == "endpoint":
        yield Recipient(ANSWERS, _host(settings.llm.base_url), Text("checks my answers"))
    if settings.screen.enabled and settings.screen.model:
        where = _host(settings.screen.base_url or settings.llm.base_url)
        yield Recipient(LOOKS, where, Text("looks at screens for me ({model})", model=settings.screen.model))
    for server in settings.mcp.servers:
        if server.url and server.tools:
            yield Recipient(TOOL_QUESTIONS, _host(server.url), Text("answers them ({server})", server=server.name))


def _host(base_url: str) -> str:
    return urlsplit(address(base_url)).hostname or base_url
