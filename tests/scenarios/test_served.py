"""With `roomtone rehearse --serve`, another client can join by the printed addresses and talk to the bot."""

from __future__ import annotations

import asyncio
import re
import ssl
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from rehearsal.discord.guild.spec import ROOMTONE_BOT_ID
from rehearsal.people.clip import Clip
from rehearsal.people.person import ScriptedPerson
from tests.patience import PATIENCE_S
from tests.scenarios.program import REPOSITORY, Program

pytestmark = pytest.mark.rehearsal

HELLO = REPOSITORY / "rehearsal" / "scenarios" / "hello"


async def until(what: Callable[[], Any], why: str) -> Any:
    """Poll `what` until it returns something. Another process gives no event that could be awaited."""
    deadline = time.monotonic() + PATIENCE_S
    while not (seen := what()):
        assert time.monotonic() < deadline, why
        await asyncio.sleep(0.2)
    return seen


def addresses(program: Program) -> dict[str, str] | None:
    """Return the printed addresses by label, or None while the output is incomplete."""
    printed = program.printed()
    assert program.running, printed
    if "Press Ctrl-C to stop it." not in printed:
        return None
    return dict(re.findall(r"^  (\S[\w ]*?)  +(\S+)", printed, re.MULTILINE))


async def test_a_guest_joins_through_the_control_api_and_is_answered_aloud(tmp_path: Path) -> None:
    """With the printed addresses and certificate, a client can join, speak, hear the bot, and appear in the status."""
    served = Program(tmp_path, "rehearse", "--serve")
    try:
        printed = await until(lambda: addresses(served), "the local Discord did not come up")
        control, guest = printed["control API"], int(printed["members"])
        trusted = ssl.create_default_context(cafile=printed["certificate"])
        async with aiohttp.ClientSession() as http:

            async def join() -> dict[str, Any]:
                async with http.post(f"{control}/members/{guest}/join") as answer:
                    return dict(await answer.json())

            async with ScriptedPerson(user_id=guest, name="guest", join=join, tls=trusted) as person:
                await person.meet(ROOMTONE_BOT_ID)
                said = await person.say(Clip.load(HELLO / "1-ada.ogg"))
                await person.wait_for_sound(ROOMTONE_BOT_ID, since=said.speech_ended_at, timeout_s=PATIENCE_S)
                async with http.post(f"{control}/network", json={"padding": 0.5}) as answer:
                    assert (await answer.json())["padding"] == 0.5
                async with http.get(f"{control}/status") as answer:
                    status = await answer.json()
        there = {member["id"]: member["voice_connected"] for member in status["members"]}
        assert there[str(ROOMTONE_BOT_ID)]
        assert there[str(guest)]
        served.interrupt()
    finally:
        served.kill()
