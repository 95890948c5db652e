"""Runs a local Discord and its crowd in a process of their own (`python -m benchmarks.load.crowd_process`).

Their CPU time is therefore not counted with that of the one who receives. Requests:

    {"op": "open", "people": 150}                     -> the addresses; the crowd is in the channel
    {"op": "prepare", "receiver": 1001, "speakers": 100, "seconds": 10, "pauses": false}   -> {"packets"}; the receiver
                                                         is in the group
    {"op": "announce", "speakers": 100}               -> {}
    {"op": "perform", "receiver": 1001, "in_step": false, "warm_up_s": 0}   -> what was sent, and how much of it
                                                         after the warm-up (`measured`)
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import structlog

from benchmarks.bot_address import bot_address
from benchmarks.child_process import keep_stdout_for_answers, serve
from benchmarks.load.crowd import Crowd
from benchmarks.load.talk import bundled_recordings, with_pauses, without_pauses
from rehearsal.discord.guild.spec import ROOMTONE_BOT_ID, Channel, GuildSpec, Member
from rehearsal.discord.server import LocalDiscord
from rehearsal.people.clip import FRAME_S

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchmarks.load.crowd import Slot
    from benchmarks.load.talk import Recording

FIRST_PERSON_ID = 10_001
GUILD_ID, CHANNEL_ID = 500, 600


class CrowdProcess:
    """The state of the process. `stack` closes what it opens."""

    def __init__(self, stack: AsyncExitStack) -> None:
        self._stack = stack
        self._crowd: Crowd | None = None
        self._recordings: tuple[Recording, ...] = ()
        self._slots: list[Slot] = []

    async def answer(self, request: Mapping[str, Any]) -> Mapping[str, object]:
        """Carry out one request."""
        if request["op"] == "open":
            return await self._open(request["people"])
        crowd = self._crowd
        assert crowd is not None, "opened before"
        match request["op"]:
            case "prepare":
                await crowd.settled(len(crowd.members) + 1)
                talks = (with_pauses if request["pauses"] else without_pauses)(
                    self._recordings, people=request["speakers"], frames=round(request["seconds"] / FRAME_S)
                )
                self._slots = await crowd.prepare(request["receiver"], talks)
                return {"packets": _packets(self._slots)}
            case "announce":
                crowd.announce(speakers=request["speakers"])
                return {}
            case "perform":
                sent = await crowd.perform(request["receiver"], self._slots, in_step=request["in_step"])
                measured = self._slots[round(request["warm_up_s"] / FRAME_S) :]
                return {**asdict(sent), "measured": _packets(measured)}
            case other:
                raise ValueError(f"unknown request {other}")

    async def _open(self, people: int) -> Mapping[str, object]:
        ids = [FIRST_PERSON_ID + number for number in range(people)]
        guild = GuildSpec(
            id=GUILD_ID,
            voice_channels=(Channel(CHANNEL_ID, "Evening"),),
            text_channel=Channel(CHANNEL_ID + 1, "chat"),
            people=tuple(Member(user_id, f"Person {user_id}") for user_id in ids),
            bots=(Member(ROOMTONE_BOT_ID, "Roomtone"),),
        )
        discord = await self._stack.enter_async_context(LocalDiscord(guild=guild))
        self._recordings = await asyncio.to_thread(bundled_recordings)
        self._crowd = Crowd(discord)
        await self._crowd.join(ids)
        return {**bot_address(discord), "control": discord.control_base}


def _packets(slots: Sequence[Slot]) -> int:
    return sum(datagram is not None for slot in slots for datagram in slot)


async def _run(answers: int) -> None:
    async with AsyncExitStack() as stack:
        await serve(answers, CrowdProcess(stack).answer)


if __name__ == "__main__":
    channel = keep_stdout_for_answers()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    asyncio.run(_run(channel))
