"""Runs a local Discord and its crowd in a process of their own.

`bench` asks it (`benchmarks.child_process`). So the crowd's CPU time is not counted with that of the one who receives.
"""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import TYPE_CHECKING

from benchmarks.child_process import answer_requests
from benchmarks.load.crowd import Crowd
from benchmarks.load.talk import bundled_recordings, with_pauses, without_pauses
from benchmarks.local_bot import bot_address
from rehearsal.discord.guild.spec import ROOMTONE_BOT_ID, Channel, GuildSpec, Member
from rehearsal.discord.server import LocalDiscord
from rehearsal.people.clip import FRAME_S

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AsyncExitStack

    from benchmarks.load.crowd import Slot

FIRST_PERSON_ID = 10_001
GUILD_ID, CHANNEL_ID = 500, 600


class CrowdProcess:
    """The state of the process. `stack` closes what it opens. What it is asked is in the public methods."""

    def __init__(self, stack: AsyncExitStack) -> None:
        self._stack = stack
        self._crowd: Crowd | None = None
        self._slots: list[Slot] = []

    async def open(self, people: int) -> Mapping[str, object]:
        """Let so many people into the channel, and return the addresses of their Discord."""
        ids = [FIRST_PERSON_ID + number for number in range(people)]
        guild = GuildSpec(
            id=GUILD_ID,
            voice_channels=(Channel(CHANNEL_ID, "Evening"),),
            text_channel=Channel(CHANNEL_ID + 1, "chat"),
            people=tuple(Member(user_id, f"Person {user_id}") for user_id in ids),
            bots=(Member(ROOMTONE_BOT_ID, "Roomtone"),),
        )
        discord = await self._stack.enter_async_context(LocalDiscord(guild=guild))
        self._crowd = Crowd(discord)
        await self._crowd.join(ids)
        return bot_address(discord)

    async def prepare(self, *, speakers: int, seconds: float, pauses: bool) -> Mapping[str, object]:
        """Make the packets of the first people, once the receiver is in the group, and announce that they speak."""
        assert self._crowd is not None, "opened before"
        await self._crowd.settled(len(self._crowd.members) + 1)
        recordings = await asyncio.to_thread(bundled_recordings)
        talks = (with_pauses if pauses else without_pauses)(
            recordings, people=speakers, frames=round(seconds / FRAME_S)
        )
        self._slots = await self._crowd.prepare(ROOMTONE_BOT_ID, talks)
        self._crowd.announce(speakers=speakers)
        return {}

    async def perform(self, *, in_step: bool, warm_up_s: float) -> Mapping[str, object]:
        """Send the packets. Returns what was sent, and how much of it after the warm-up (`measured`)."""
        assert self._crowd is not None, "opened before"
        after = self._slots[round(warm_up_s / FRAME_S) :]
        measured = sum(datagram is not None for slot in after for datagram in slot)
        sent = await self._crowd.perform(ROOMTONE_BOT_ID, self._slots, in_step=in_step)
        return {**asdict(sent), "measured": measured}


if __name__ == "__main__":
    answer_requests(CrowdProcess)
