"""What a tool of one role has returned, on the local Discord: who is in the channel now, with which roles, decides
whether the model of the next answer reads it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC
from functools import partial
from pathlib import Path

from bot.brain.context import build_context_messages
from bot.brain.tools.tool import Asker, RoomTool
from bot.brain.tools.toolbox import Toolbox, ToolExchange, reach_in
from bot.discord.room_channel import DiscordRoomChannel
from compaction.model import TurnKind, TurnPart
from compaction.payload import MessageToolCall
from rehearsal.discord.guild.spec import GuildSpec, Member, Role
from tests.bot.brain.tools.calls import for_all
from tests.bot.discord.client import ADA, BEN, enters, online, room_channel_in
from tests.bot.evening import Evening
from tests.patience import settle

LOUNGE, CHLOE = 600, 2003
BOSS = Role(901, "Boss")
GUILD = GuildSpec(
    roles=(BOSS,),
    people=(
        Member(ADA, "Ada", moderator=True, role_ids=(BOSS.id,)),
        Member(BEN, "Ben"),
        Member(CHLOE, "Chloe", role_ids=(BOSS.id,)),
    ),
)
SECRET = "Ben earns 4,411"
READ = MessageToolCall("c", "desk_hr_read", "{}")


class Desk:
    """A room with a tool of the role, and what the model of each answer is sent."""

    def __init__(self, evening: Evening, channel: DiscordRoomChannel) -> None:
        async def read(_: Mapping[str, object]) -> str:
            return SECRET

        def has_role(asker: Asker) -> bool:
            return BOSS.id in asker.roles

        tool = RoomTool(READ.name, "", {"type": "object"}, for_all(read, has_role), asks=False, permits=has_role)
        self.toolbox = Toolbox([tool], reach=partial(reach_in, channel))
        self._evening, self._channel = evening, channel

    async def sent(self, user_id: int, words: str, *, reads: bool = False) -> str:
        """Let somebody ask, and return what the model is sent. `reads`: it calls the tool then."""
        evening = self._evening
        person = next(each for each in self._channel.members() if each.id == user_id)
        asker = Asker(user_id, person.name, present=True, roles=person.roles)
        evening.clock.advance(4.0)
        now = evening.clock.now()
        part = TurnPart(str(user_id), person.name, words)
        turn = await evening.timeline.append(TurnKind.SPEECH, (part,), started_at=now, ended_at=now + 1.0)
        context = build_context_messages(
            evening.timeline,
            turn,
            system=(),
            max_input_tokens=8_000,
            now=now,
            zone=UTC,
            toolbox=self.toolbox,
            asker=asker,
        )
        if reads:
            results = await context.tools.run_all([READ])
            context.tools.record(turn.seq, [ToolExchange((READ,), results)])
        return " ".join(message.content for message in context.messages)


async def test_the_result_of_a_roles_tool_is_sent_only_for_those_who_have_the_role(tmp_path: Path) -> None:
    """Ben is there and has no role: his question, and Ada's while he listens, are answered without it."""
    async with online(GUILD) as (local, client, rooms), Evening(tmp_path / "roomtone.db") as evening:
        channel = room_channel_in(client, LOUNGE)
        for user_id in (ADA, BEN, CHLOE):
            await enters(local, rooms, user_id)
        await settle(lambda: len(channel.members()) == 3)
        await channel.refresh_rights()
        desk = Desk(evening, channel)
        await desk.sent(ADA, "Roomtone, what does the file say?", reads=True)
        assert SECRET not in await desk.sent(BEN, "Roomtone, and what was that?")
        assert SECRET not in await desk.sent(ADA, "Roomtone, and again?")
        await local.leave(BEN)
        await settle(lambda: len(channel.members()) == 2)
        assert SECRET in await desk.sent(CHLOE, "Roomtone, and now?")
        await enters(local, rooms, BEN)
        await settle(lambda: len(channel.members()) == 3)
        assert SECRET not in await desk.sent(CHLOE, "Roomtone, once more?")
