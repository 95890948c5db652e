"""A screen is shared with the running bot over its real web socket, and the remark about it is heard in the channel."""

from __future__ import annotations

import json
import re
import ssl
import time
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest

from rehearsal.discord.guild import ROOMTONE_BOT_ID
from rehearsal.people.person import Person
from rehearsal.servers.chat import ChatConduct, LocalChatServer
from tests.scenarios.program import Program
from tests.scenarios.test_served import PATIENCE_S, addresses, until
from tests.voice.screen.screens import jpeg, screen

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.rehearsal

REMARK = "Watch out, the winter soldier has very little health left."
LOW = ((60, 40, "Tokyo 2099"), (60, 640, "Winter Soldier  HP 12"))


@pytest.mark.asyncio
async def test_a_shared_screen_is_remarked_upon_aloud(tmp_path: Path) -> None:
    """Command, link, page, picture, note, model, voice: the person hears what the bot has to say of their screen."""
    async with LocalChatServer(ChatConduct(answer=lambda call: REMARK)) as model:
        served = Program(
            tmp_path,
            "rehearse",
            "--serve",
            ROOMTONE_LLM__BASE_URL=model.base_url,
            ROOMTONE_LLM__MODEL="local-chat",
            ROOMTONE_WEB__PORT="0",
        )
        try:
            printed = await until(lambda: addresses(served), "the local Discord did not come up")
            trusted = ssl.create_default_context(cafile=printed["certificate"])
            async with aiohttp.ClientSession() as http:
                await _watch_together(http, printed["control API"], int(printed["members"]), trusted, model)
            served.interrupt()
        finally:
            served.kill()


async def _watch_together(
    http: aiohttp.ClientSession, control: str, guest: int, trusted: ssl.SSLContext, model: LocalChatServer
) -> None:
    async def ask(path: str, **body: object) -> dict[str, Any]:
        async with http.post(f"{control}/members/{guest}/{path}", json=body) as answer:
            return dict(await answer.json())

    async with Person(user_id=guest, name="guest", join=lambda: ask("join"), tls=trusted) as person:
        await person.meet(ROOMTONE_BOT_ID)
        answer = await ask("command", name="watch start")
        found = re.search(r"<(http://localhost:\d+)/share#(\S+)>", answer["replies"][-1]["content"])
        assert found is not None, answer
        origin, token = found.groups()
        async with http.ws_connect(f"{origin}/share/socket", origin=origin) as page:
            await page.send_json({"t": "hello", "token": token})
            assert (await _told(page, "welcome"))["sharing"] is False
            await page.send_json({"t": "start", "surface": "window"})
            began_at = time.monotonic()
            await page.send_bytes(jpeg(screen(LOW)))
            assert "HP12" in (await _told(page, "note"))["what"].replace(" ", "")
            await person.wait_for_sound(ROOMTONE_BOT_ID, since=began_at, timeout_s=PATIENCE_S)
            asked = next(call for call in reversed(model.calls) if call.stream)
            assert "screen: a window, just shared. It reads" in str(asked.messages)
            assert "look_at_screen" in asked.offered
            looked = (await ask("command", name="watch look"))["replies"][-1]["content"]
            assert "Winter Soldier" in looked
            await page.send_json({"t": "stop"})
            assert (await _told(page, "ended"))["reason"] == "stopped"


async def _told(page: aiohttp.ClientWebSocketResponse, kind: str) -> dict[str, Any]:
    """Return the next message of that kind."""
    while True:
        message = await page.receive(timeout=PATIENCE_S)
        assert message.type is aiohttp.WSMsgType.TEXT, message
        told = dict(json.loads(message.data))
        if told["t"] == kind:
            return told
