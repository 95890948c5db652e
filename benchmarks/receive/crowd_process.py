"""Runs a local Discord and its crowd in a process of their own (`python -m benchmarks.receive.crowd_process`).

Their CPU time is therefore not counted with that of the one who receives. Requests:

    {"op": "open", "people": 150}                     -> the addresses; the crowd is in the channel
    {"op": "prepare", "receiver": 1001, "speakers": 100, "seconds": 10}   -> {"packets"}; the receiver is in the group
    {"op": "announce", "speakers": 100}               -> {}
    {"op": "perform", "receiver": 1001, "together": false}   -> what was sent
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
from benchmarks.receive.crowd import Crowd, load_opus
from rehearsal.discord.guild.spec import ROOMTONE_BOT_ID, Channel, GuildSpec, Member
from rehearsal.discord.server import LocalDiscord
from rehearsal.people.clip import FRAME_S
from rehearsal.script.scenario_file import scenario_path

if TYPE_CHECKING:
    from collections.abc import Mapping

FIRST_PERSON_ID, NODE_ID = 10_001, 2_001
GUILD_ID, CHANNEL_ID = 500, 600
# Each person begins elsewhere in this talk.
_TALK_S = 20.0


class CrowdProcess:
    """The state of the process. `stack` closes what it opens."""

    def __init__(self, stack: AsyncExitStack) -> None:
        self._stack = stack
        self._crowd: Crowd | None = None
        self._slots: list[list[bytes]] = []

    async def answer(self, request: Mapping[str, Any]) -> Mapping[str, object]:
        """Carry out one request."""
        if request["op"] == "open":
            return await self._open(request["people"])
        crowd = self._crowd
        assert crowd is not None, "opened before"
        match request["op"]:
            case "prepare":
                await crowd.settled(len(crowd.members) + 1)
                frames = round(request["seconds"] / FRAME_S)
                self._slots = crowd.prepare(request["receiver"], frames, speakers=request["speakers"])
                return {"packets": sum(map(len, self._slots))}
            case "announce":
                crowd.announce(speakers=request["speakers"])
                return {}
            case "perform":
                sent = await crowd.perform(request["receiver"], self._slots, together=request["together"])
                return asdict(sent)
            case other:
                raise ValueError(f"unknown request {other}")

    async def _open(self, people: int) -> Mapping[str, object]:
        ids = [FIRST_PERSON_ID + number for number in range(people)]
        guild = GuildSpec(
            id=GUILD_ID,
            voice_channels=(Channel(CHANNEL_ID, "Evening"),),
            text_channel=Channel(CHANNEL_ID + 1, "chat"),
            people=(*(Member(user_id, f"Person {user_id}") for user_id in ids), Member(NODE_ID, "Node")),
            bots=(Member(ROOMTONE_BOT_ID, "Roomtone"),),
        )
        discord = await self._stack.enter_async_context(LocalDiscord(guild=guild))
        recordings = sorted(scenario_path("crowd").parent.glob("*.ogg"))
        opus = await asyncio.to_thread(load_opus, recordings, least_s=_TALK_S)
        self._crowd = Crowd(discord, opus)
        await self._crowd.join(ids)
        return {**bot_address(discord), "control": discord.control_base}


async def _run(answers: int) -> None:
    async with AsyncExitStack() as stack:
        await serve(answers, CrowdProcess(stack).answer)


if __name__ == "__main__":
    channel = keep_stdout_for_answers()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    asyncio.run(_run(channel))
