"""Every client of a server in the settings, found in the code: none of them unpacks what it has not asked for."""

from __future__ import annotations

import ast
import gzip
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest
from aiohttp import web
from pydantic import SecretStr
from websockets.exceptions import WebSocketException

from bot.dashboard.discord_login import DiscordLogin
from bot.errors import BotError
from bot.llm.budgeted import Budget
from bot.llm.factory import list_served_models
from bot.llm.model_calls import OPERATOR
from bot.llm.openai_chat import OpenAIChat
from bot.llm.openai_embeddings import OpenAIEmbeddings
from bot.llm.openai_moderation import OpenAIModerator
from bot.llm.openai_vision import OpenAIVision
from bot.llm.port import ChatMessage, ChatRole
from bot.llm.settings import LlmSettings
from bot.mcp.servers import list_server_tools
from bot.mcp.settings import McpServerSettings
from compaction.errors import CompactionError
from compaction.settings import BudgetSettings
from rehearsal.servers.loopback import LoopbackServer
from tests.bot.mcp.approved import AllApproved
from tests.fakes.clock import FakeClock
from tests.patience import PATIENCE_S
from tests.sources import ROOT, nodes
from voice.asr.port import RecognitionRequest
from voice.asr.remote import RemoteRecogniser
from voice.endpoint import Endpoint, open_client
from voice.errors import VoiceError
from voice.realtime.connection import dial
from voice.screen.port import VisionRequest
from voice.speaking.openai import OpenAISynthesizer, SpeechEndpoint

# 50 MB of blanks, in some 200 bytes.
BOMB = gzip.compress(gzip.compress(b" " * 50_000_000))


async def _used(client: AbstractAsyncContextManager[Any], ask: Callable[[Any], Any]) -> None:
    """Open a client and have it ask its server."""
    async with client as opened:
        asked = ask(opened)
        if isinstance(asked, AsyncIterator):
            _ = [piece async for piece in asked]
        else:
            await asked


async def _log_in(url: str) -> None:
    login = DiscordLogin(SecretStr("secret"), api_base=url, clock=FakeClock())
    begun = login.start(1, "http://localhost/login")
    (state,) = parse_qs(urlsplit(begun.url).query)["state"]
    await login.finish(1, begun.proof, state, "code")


HELLO = [ChatMessage(ChatRole.USER, "Hi")]
SILENCE = np.zeros(16_000, np.int16)
LOOK = VisionRequest(b"\xff\xd8")
# Module with a client of an endpoint -> a call by it.
CLIENTS: dict[str, Callable[[str], Awaitable[object]]] = {
    "bot.llm.chat_client": lambda url: _used(
        OpenAIChat(LlmSettings(base_url=url, model="m")), lambda chat: chat.stream(HELLO, max_output_tokens=9)
    ),
    "bot.llm.factory": lambda url: list_served_models(LlmSettings(base_url=url)),
    "bot.llm.openai_embeddings": lambda url: _used(
        OpenAIEmbeddings(Endpoint(url, "m")), lambda embeddings: embeddings.embed(["Hi"])
    ),
    "bot.llm.openai_moderation": lambda url: _used(
        OpenAIModerator(Endpoint(url, "m")), lambda moderator: moderator.objection("Hi")
    ),
    "bot.mcp.connection": lambda url: list_server_tools(McpServerSettings(name="web", url=url), AllApproved()),
    "voice.asr.remote": lambda url: _used(
        RemoteRecogniser(Endpoint(url, "m")),
        lambda recogniser: recogniser.recognise(RecognitionRequest(SILENCE, speaker_id=1)),
    ),
    "voice.realtime.session": lambda url: _used(
        open_client(url, "", timeout_s=PATIENCE_S), lambda client: dial(client, model="m", within_s=PATIENCE_S)
    ),
    "voice.speaking.openai": lambda url: _used(
        OpenAISynthesizer(SpeechEndpoint(url, "m", voice="v")), lambda voice: voice.stream("Hi")
    ),
}
# Two more that have theirs from elsewhere.
OTHERS: dict[str, Callable[[str], Awaitable[object]]] = {
    "bot.llm.openai_vision": lambda url: _used(
        OpenAIVision(Endpoint(url, "m"), Budget(BudgetSettings())),
        lambda vision: vision.read(lambda: LOOK, payer=OPERATOR),
    ),
    "bot.dashboard.discord_login": _log_in,
}
# Modules that make such clients for others.
MAKERS = {"voice.endpoint", "voice.plain_http"}
# The first talks to Discord alone. The others read no body.
WITH_THEIR_OWN = {"bot.dashboard.discord_login", "bot.discord.endpoint", "bot.outgoing_address"}
_OPENERS = {"open_http", "open_client", "endpoint.open"}
_LIBRARIES = {"httpx2.AsyncClient", "httpx2.Client", "aiohttp.ClientSession", "openai.AsyncOpenAI", "openai.OpenAI"}


def _calling(names: set[str]) -> set[str]:
    """Return the modules of the bot that call one of these."""
    return {
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for package in ("bot", "voice", "compaction", "config")
        for path in (ROOT / package).rglob("*.py")
        for node in nodes(path)
        if isinstance(node, ast.Call) and ast.unparse(node.func) in names
    }


@pytest.mark.slow
def test_the_table_has_every_client() -> None:
    """No other module makes a client, and none makes one by itself."""
    assert _calling(_OPENERS) - MAKERS == set(CLIENTS)
    assert _calling(_LIBRARIES) == MAKERS | WITH_THEIR_OWN


@asynccontextmanager
async def server(status: int) -> AsyncIterator[tuple[str, list[str]]]:
    """Start a server that answers everything with a bomb; yield its address and the encodings that it was asked for."""
    asked: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(request.headers.get("accept-encoding", ""))
        headers = {"Content-Encoding": "gzip, gzip", "Content-Type": "application/json"}
        return web.Response(status=status, body=BOMB, headers=headers)

    async with LoopbackServer([web.route("*", "/{path:.*}", answer)]) as loopback:
        yield loopback.base_url, asked


@pytest.mark.server
@pytest.mark.parametrize("status", [200, 500])
@pytest.mark.parametrize(
    "ask",
    [*CLIENTS.values(), *OTHERS.values()],
    ids=[*CLIENTS, *OTHERS],
)
async def test_no_client_unpacks_what_it_did_not_ask_for(
    ask: Callable[[str], Awaitable[object]], status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its call fails. Nothing is unpacked, not even of an error."""
    unpacked: list[bytes] = []

    class Decompressor:
        """One that notes what it is given, and makes nothing of it."""

        unconsumed_tail = unused_data = b""
        eof = True

        def decompress(self, data: bytes, max_length: int = 0) -> bytes:
            unpacked.append(data)
            return b""

        def flush(self) -> bytes:
            return b""

    monkeypatch.setattr(zlib, "decompressobj", lambda *_, **__: Decompressor())
    async with server(status) as (url, asked):
        with pytest.raises((BotError, CompactionError, VoiceError, WebSocketException)):
            await ask(url)
    assert unpacked == []
    assert set(asked) <= {"identity", ""}
    assert asked
