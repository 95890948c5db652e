"""Shared screens in a whole room: their notes are in the prompt, the bot remarks on them, and they outlive
the share.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from bot import events
from bot.screen.messages import ShareEnd
from bot.screen.screens import ScreenPageConnection
from compaction.model import TurnKind
from tests.bot.room.cinema import GUILD, REMARK, a_cinema
from tests.bot.room.room_scene import ended
from tests.fakes.room_channel import ADA
from tests.patience import PATIENCE_S, settle


async def test_a_screen_is_remarked_upon_in_a_pause(tmp_path: Path) -> None:
    """Alone with one person, the bot remarks once on a new note, which is in the prompt."""
    async with a_cinema(tmp_path) as cinema:
        house = cinema.house
        house.channel.people = [ADA]
        async with cinema.living():
            await house.say(ADA.id, "Roomtone, watch this with me.")
            await house.reply(1)
            line = await cinema.share()
            await cinema.see(line, "dark", "Winter Soldier", "HP 12")
            await house.pass_time(4)
            reply = await house.reply(2)
            assert reply.text == REMARK
            prompt = "\n".join(str(message.content) for message in cinema.responder.contexts[-1].messages)
            assert (
                "On Ada's screen (Ada began to share): a window, just shared. It reads “Winter Soldier · HP 12”"
                in prompt
            )
            assert "shared screen has changed" in prompt
            await cinema.see(line, "bright", "Victory")
            await house.pass_time(6)
            assert len(house.of(events.ReplySpoken)) == 2


@pytest.mark.parametrize("asks", [False, True])
async def test_a_share_ends_when_its_person_opts_out(tmp_path: Path, *, asks: bool) -> None:
    """With /opt-out, or when consent is withdrawn, the share ends at once, before the next check of the sharers."""
    async with a_cinema(tmp_path) as cinema:
        house = cinema.house
        guild = await house.participation.of_guild(GUILD)
        async with cinema.living():
            guild.asks, guild.consent.agreed = asks, frozenset({ADA.id})
            line = await cinema.share()
            await cinema.see(line, "dark", "Winter Soldier", "HP 12")
            screens = cinema.screens.room(GUILD)
            assert screens is not None
            (sharer,) = screens.sharers()
            if asks:
                await house.participation.set_agreed(GUILD, ADA.id, agrees=False)
            else:
                await house.participation.set_opt_out(GUILD, ADA.id, out=True)
            assert (sharer.ended, screens.sharing()) == (ShareEnd.OPTED_OUT, [])
            await settle(lambda: sharer.share is None)
        assert not any("stopped sharing" in turn.text for turn in house.turns), "nothing is told of it"


async def test_leaving_keeps_what_was_seen(tmp_path: Path) -> None:
    """When the room closes, the page is informed, the recap of the share becomes a turn, and the closing segment has
    the notes.
    """
    async with a_cinema(tmp_path) as cinema:
        house = cinema.house
        async with cinema.living() as (room, task):
            line = await cinema.share()
            await cinema.see(line, "dark", "Winter Soldier has 87 health")
            assert cinema.screens.room(GUILD) is not None
            room.close("left")
            waiting = asyncio.create_task(_last(line))
            while not task.done():
                await house.pass_time(1)
                await asyncio.sleep(0.001)
            assert await ended(house, task) == "left"
            assert await waiting == "closed"
        assert cinema.screens.room(GUILD) is None
        _, turn = [turn for turn in house.turns if turn.kind is TurnKind.MEMBERSHIP]
        assert turn.parts[0].text.startswith("Ada stopped sharing a window")
        opened = house.of(events.RoomOpened)[0]
        stored = await house.store.load(opened.session_id)  # type: ignore[arg-type]
        assert len(stored.segments[-1].note_ids) == 1


async def _last(line: ScreenPageConnection) -> str:
    async with asyncio.timeout(PATIENCE_S):
        messages = [message async for message in line.messages()]
    return str(messages[-1]["reason"])
