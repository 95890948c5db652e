"""A local Discord with an evening that the bot remembers, for the commands that show what was said.

Ada moderates, so she may enter every voice channel; Ben may enter all but the committee's. One is age-restricted.
"""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC
from functools import partial
from typing import TYPE_CHECKING, Any

from bot.discord.commands.sessions import add_sessions
from bot.discord.connection import connected
from bot.memory.digests import Digests
from bot.memory.session_views import SessionViews
from bot.store.attendance import AttendanceStore, Presence
from bot.store.history import SessionHistory
from bot.store.sessions import Sessions
from compaction.model import Turn, TurnKind, TurnPart
from compaction.summary.extractive import ExtractiveSummariser
from rehearsal.discord.guild.permissions import DiscordPermission
from rehearsal.discord.guild.spec import Channel, GuildSpec, Member
from rehearsal.pytest_plugin import open_discord
from tests.bot.discord.client import FakeRooms, settings_for
from tests.bot.evening import Evening
from tests.patience import PATIENCE_S, settle

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from pathlib import Path

    from bot.discord.client import AddCommands, RoomtoneClient
    from compaction.summary.port import Summariser
    from rehearsal.discord.interactions.result import InteractionReply
    from rehearsal.discord.server import LocalDiscord


ADA, BEN, CHLOE = 2001, 2002, 2003
LOUNGE, COMMITTEE, STAIRS, NIGHT = 600, 602, 603, 604
GUILD = GuildSpec(
    voice_channels=(
        Channel(LOUNGE, "Evening"),
        Channel(COMMITTEE, "Committee", denied=int(DiscordPermission.CONNECT)),
        Channel(STAIRS, "Stairs", denied=int(DiscordPermission.VIEW_CHANNEL)),
        Channel(NIGHT, "Night", age_restricted=True),
    ),
    people=(Member(ADA, "Ada", moderator=True), Member(BEN, "Ben"), Member(CHLOE, "Chloe", locale="de")),
)
NAMES = {ADA: "Ada", BEN: "Ben", CHLOE: "Chloe"}
# The names of discord.py's tasks that carry out commands and buttons.
AT_WORK = ("CommandTree-invoker", "discord-ui-view-dispatch", "discord-ui-dynamic-item")


@dataclass
class Remembered:
    """The local Discord, the evening, and the people whose words are withheld."""

    local: LocalDiscord
    client: RoomtoneClient
    rooms: FakeRooms
    evening: Evening
    withheld: set[str] = field(default_factory=set)

    async def say(self, person: int, text: str, *, kind: TurnKind = TurnKind.SPEECH, after_s: float = 4.0) -> Turn:
        """Let somebody say something, `after_s` after the last turn."""
        self.evening.clock.advance(after_s)
        now = self.evening.clock.now()
        part = TurnPart(str(person), NAMES[person], text)
        return await self.evening.timeline.append(kind, (part,), started_at=now, ended_at=now + 2.0)

    async def reply(self, text: str) -> Turn:
        self.evening.clock.advance(4.0)
        now = self.evening.clock.now()
        part = TurnPart("assistant", "Roomtone", text)
        return await self.evening.timeline.append(TurnKind.ASSISTANT, (part,), started_at=now, ended_at=now + 2.0)

    async def come(self, *people: int) -> None:
        """Let people be in the channel from now on, as the room records it."""
        await self._record(people, joined=True)

    async def go(self, *people: int) -> None:
        """Let people be away from now on."""
        await self._record(people, joined=False)

    async def _record(self, people: Sequence[int], *, joined: bool) -> None:
        now = self.evening.clock.now()
        changes = [Presence(str(person), now, joined=joined) for person in people]
        await AttendanceStore(self.evening.database).add(self.evening.session_id, changes)

    async def use(
        self, person: int, command: str, *, channel_id: int | None = None, **options: Any
    ) -> InteractionReply:
        """Use a command and return the answer, which only this person sees."""
        result = await self.local.invoke(person, command, options, channel_id=channel_id)
        await result.until(lambda current: bool(current.replies), timeout_s=PATIENCE_S)
        await handled()
        assert all(reply.ephemeral for reply in result.replies)
        return result.replies[0]

    async def press(self, person: int, reply: InteractionReply, custom_id: str) -> InteractionReply:
        """Press a button below an answer, and return what it became, or the new answer."""
        result = await self.local.press(person, int(reply.payload["id"]), custom_id)
        await handled()
        return result.replies[0]


async def handled() -> None:
    """Wait until the bot is done with what was used: discord.py knows the buttons below an answer only when Discord has
    confirmed it, which comes after the answer.
    """
    await settle(lambda: not any(task.get_name().startswith(AT_WORK) for task in asyncio.all_tasks()))


def digests_of(evening: Evening, views: SessionViews, model: Summariser | None = None) -> Digests:
    """Return what makes digests, with a model or without one."""

    async def summariser_of(_: int) -> Summariser:
        return model or ExtractiveSummariser()

    return Digests(views, SessionHistory(evening.database), summariser_of=summariser_of)


def session_commands(evening: Evening, views: SessionViews, model: Summariser | None = None) -> AddCommands:
    """Return what adds /recap and /transcript."""
    digests = digests_of(evening, views, model)
    return partial(add_sessions, views=views, digests=digests, clock=evening.clock, zone=UTC)


@asynccontextmanager
async def remembered(
    folder: Path,
    commands: Callable[[Evening, SessionViews], Sequence[AddCommands]],
    *,
    channel: int = LOUNGE,
    present: Sequence[int] = (ADA, BEN, CHLOE),
) -> AsyncIterator[Remembered]:
    """Start a local Discord with the client, and an evening in `channel`. `commands`: returns those to add.
    `present`: who is in the channel from the beginning, as the room records it.
    """
    withheld: set[str] = set()

    async def who(_: int) -> frozenset[str]:
        return frozenset(withheld)

    async with Evening(folder / "roomtone.db", channel=channel, guild=GUILD.id) as evening:
        views = SessionViews(Sessions(evening.database, evening.clock), evening.store, withheld=who)
        rooms = FakeRooms()
        async with (
            open_discord(GUILD) as opened,
            connected(settings_for(opened.discord), rooms, commands(evening, views)) as client,
        ):
            here = Remembered(opened.discord, client, rooms, evening, withheld)
            await here.come(*present)
            yield here


def seen(reply: InteractionReply) -> str:
    """Return everything that Discord shows of an answer: its text, embeds, buttons and files."""
    shown = [reply.content]
    for embed in reply.payload.get("embeds", ()):
        shown += [embed.get("title") or "", embed.get("description") or ""]
        shown += [f"{each['name']}\n{each['value']}" for each in embed.get("fields", ())]
        shown.append((embed.get("footer") or {}).get("text") or "")
    for row in reply.payload.get("components", ()):
        labels = [f"[{each.get('label')}{' off' if each.get('disabled') else ''}]" for each in row["components"]]
        shown.append(" ".join(labels))
    shown += [f"({file['filename']})" for file in reply.payload.get("attachments", ())]
    return "\n".join(filter(None, shown))


def commands_with(model: Summariser | None) -> Callable[[Evening, SessionViews], Sequence[AddCommands]]:
    def commands(evening: Evening, views: SessionViews) -> Sequence[AddCommands]:
        return [session_commands(evening, views, model)]

    return commands


def catching_up(folder: Path, **how: Any) -> AbstractAsyncContextManager[Remembered]:
    """Start a local Discord with an evening, the command and the button. `how`: see `remembered`."""
    return remembered(folder, commands_with(None), **how)
