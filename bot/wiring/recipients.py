"""Who besides Discord gets a part of the conversation, read from the settings. The bot's notice names them."""

from __future__ import annotations

from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from bot.room.notice import Recipient
from bot.wiring.speech_models import speaks_by_endpoint
from voice.endpoint import address

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bot.wiring.settings import BotSettings

SOUND = "the sound of your voice"
WORDS = "what is said, as text"
ANSWERS = "what I say, as text"
PICTURES = "pictures of shared screens"
TOOL_QUESTIONS = "what I ask my tools"


def recipients(settings: BotSettings) -> tuple[Recipient, ...]:
    """Return everybody on another machine who gets a part of the conversation with these settings."""
    return tuple(found for found in _all_recipients(settings) if not _is_this_machine(found.host))


def _all_recipients(settings: BotSettings) -> Iterator[Recipient]:
    if settings.realtime.enabled:
        for what in (SOUND, WORDS):
            yield Recipient(what, _host(settings.realtime.base_url), f"speech-to-speech {settings.realtime.model}")
    if settings.asr.engine == "endpoint":
        yield Recipient(SOUND, _host(settings.asr.base_url), f"recogniser {settings.asr.endpoint_model}")
    if settings.llm.configured:
        for llm in (settings.llm, *settings.llm.fallbacks()):
            yield Recipient(WORDS, _host(llm.base_url), f"language model {llm.model}")
    if settings.recall.embedder == "endpoint" or (settings.recall.embedder == "auto" and settings.recall.base_url):
        yield Recipient(WORDS, _host(settings.recall.base_url), f"search {settings.recall.model}")
    if speaks_by_endpoint(settings.speaking):
        yield Recipient(ANSWERS, _host(settings.speaking.base_url), f"voice {settings.speaking.model}")
    if settings.speaking.moderation == "endpoint":
        yield Recipient(ANSWERS, _host(settings.llm.base_url), "moderation")
    if settings.screen.enabled and settings.screen.model:
        where = _host(settings.screen.base_url or settings.llm.base_url)
        yield Recipient(PICTURES, where, f"vision model {settings.screen.model}")
    for server in settings.mcp.servers:
        if server.url and server.tools:
            yield Recipient(TOOL_QUESTIONS, _host(server.url), f"tools of {server.name}")


def _host(base_url: str) -> str:
    return urlsplit(address(base_url)).hostname or base_url


def _is_this_machine(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
