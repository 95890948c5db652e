"""The page with a microphone: who may open it, and that voices go both ways."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from pathlib import Path

import aiohttp
import numpy as np
import pytest

from bot import events
from rehearsal.discord.server import LocalDiscord
from rehearsal.pytest_plugin import DiscordForTests
from rehearsal.roomtone.microphone import MicrophonePage, NewestQueue
from tests.patience import PATIENCE_S, settle
from tests.rehearsal.people.sounds import clip_of, tone

ADA = 2001


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("", {}, 200),
        ("../", {}, 404),
        ("../guessed/", {}, 404),
        ("", {"Host": "evil.example"}, 403),
        ("socket", {"Origin": "http://evil.example"}, 403),
        ("socket", {"Origin": "null"}, 403),
    ],
)
async def test_it_is_for_its_own_page_alone(
    local: LocalDiscord, path: str, headers: dict[str, str], status: int
) -> None:
    """Whoever has not the whole address finds nothing, and other pages are refused."""
    async with (
        MicrophonePage(local) as page,
        aiohttp.ClientSession() as http,
        http.get(page.link + path, headers=headers) as answer,
    ):
        assert answer.status == status
        policies = answer.headers.get("Content-Security-Policy", ""), answer.headers.get("Permissions-Policy", "")
        assert ("script-src 'self'" in policies[0] and policies[1] == "microphone=(self)") is (status == 200)


async def test_voices_go_both_ways(local_discord: DiscordForTests, tmp_path: Path) -> None:
    """Ben hears the page's microphone, again after a pause, and the page gets Ben's voice and what the bot heard.
    Nobody else talks meanwhile. When the page is gone, Ada is too.
    """
    local, clip = local_discord.discord, clip_of(tmp_path)
    async with MicrophonePage(local) as page, aiohttp.ClientSession() as http, local_discord.person("Ben") as ben:
        connect = partial(http.ws_connect, f"{page.link}socket", origin=f"http://127.0.0.1:{page.port}")
        async with connect() as socket, asyncio.timeout(PATIENCE_S):
            assert (await socket.receive_json())["you"] == "Ada"
            await ben.voice.meet(ADA)
            for _ in range(2):
                since = time.monotonic()
                for frame in tone(0.5).reshape(-1, 960):
                    await socket.send_bytes(frame.tobytes())
                await ben.voice.wait_for_sound(ADA, since=since, timeout_s=PATIENCE_S)
                await ben.voice.wait_for_quiet(ADA, quiet_s=0.5, timeout_s=PATIENCE_S)
            async with connect() as second:
                assert "another page" in (await second.receive_json())["why"]
            page.observe(events.UtteranceTranscribed("u", ADA, "A tone.", 1.0, 2.0, 3.0))
            assert (await socket.receive_json())["text"] == "A tone."
            speaking = asyncio.create_task(ben.say(clip))
            while np.abs(np.frombuffer(await socket.receive_bytes(), "<i2", offset=4)).max() < 1_000:
                pass
            await speaking
        await settle(lambda: not any(state["user_id"] == str(ADA) for state in local.state.voice_states.values()))


def test_the_oldest_goes_where_nobody_takes_it() -> None:
    """A page that is busy, or a person without keys, is never behind by more than the queue."""
    queue: NewestQueue[int] = NewestQueue(2)
    for number in range(5):
        queue.put_newest(number)
    assert [queue.get_nowait() for _ in range(queue.qsize())] == [3, 4]
