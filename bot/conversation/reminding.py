"""The reminders and timers of one room: keeps what people ask for, and has each told when it is due (`bot.reminders`).

Between two looks it holds only a time. What is told is read from the store when nobody speaks, so that nothing is said
that was deleted or forgotten meanwhile.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

import structlog

from bot.brain.question import DueReminder
from bot.reminders import MOST_EACH, fate, telling
from bot.store.reminders import Reminder
from compaction.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bot.brain.reply import Reply
    from bot.channel.participants import Participants
    from bot.conversation.conversation import Conversation
    from bot.conversation.services import RoomContext

log = structlog.get_logger()

LOOK_EVERY_S = 1.0
# When to look again for somebody who is not there yet, after a failure, and after a reminder that nobody heard.
AGAIN_S = 30.0


class Reminding:
    """The reminders of one session's channel. `talk`: has each said, once nobody speaks.

    *Ownership*: the conversation runs `run`. Call everything on its loop.
    """

    def __init__(self, session: RoomContext, participants: Participants, talk: Conversation) -> None:
        self._session_id, self._channel = session.id, session.channel
        self._store, self._clock = session.services.memory.sessions.reminders, session.services.clock
        self._words, self._guild, self._upkeep = session.words, session.guild, session.upkeep
        self._participants, self._talk = participants, talk
        # When to look at the store next; those that were heard, and are not deleted yet.
        self._look_at = 0.0
        self._heard: set[int] = set()

    async def add(self, person_id: int, due_at: float, *, what: str, whom: str, in_chat: bool) -> bool:
        """See `RoomReminders`."""
        place = (self._session_id, self._channel.guild_id, self._channel.channel_id)
        if self._upkeep is not None:
            # Whose words it may have: also those of whom a prompt has quoted just now.
            await self._upkeep.store_waiting()
        added = await self._store.add(Reminder(*place, person_id, due_at, what, whom, in_chat), most=MOST_EACH)
        self._look_at = min(self._look_at, due_at)
        return added

    async def told_to(self, person_id: int) -> Sequence[tuple[str, Reminder]]:
        """See `RoomReminders`: those of this session, which everybody may have heard, and their own of earlier ones."""
        return [
            (self._participants.name(each.person_id), each.without_words_of(self._guild.opted_out_ids()))
            for each in await self._store.of(self._channel.guild_id, self._channel.channel_id)
            if each.person_id == person_id or each.session_id == self._session_id
        ]

    async def delete(self, number: int) -> bool:
        """See `RoomReminders`."""
        return await self._store.delete(number)

    async def run(self) -> None:
        """Have reminders told when they are due. Never returns."""
        while True:
            await self._clock.sleep(LOOK_EVERY_S)
            if self._clock.now() < self._look_at:
                continue
            try:
                await self._talk.until_free()
                await self._look()
            except StoreError as error:
                log.warning("reminders_not_read", problem=error)
                self._look_at = self._clock.now() + AGAIN_S

    async def _look(self) -> None:
        """Delete what was told or is too late, and begin to tell the first that is due."""
        for number in tuple(self._heard):
            await self._store.delete(number)
            self._heard.discard(number)
        times = self._words.times
        kept = await self._store.of(self._channel.guild_id, self._channel.channel_id)
        if times != self._words.times:
            # The store has lost those of somebody.
            return
        # From here on nothing may be awaited before one is told.
        withheld = self._guild.opted_out_ids()
        now, present = self._clock.now(), {each.id for each in self._channel.members()}
        later = [each.due_at for each in kept if each.due_at > now]
        due = [each for each in kept if each.due_at <= now and not self._words.excludes(each.person_id)]
        self._look_at = min([*later, now + AGAIN_S] if due else later, default=inf)
        for each in due:
            what = fate(each, now=now, session_id=self._session_id, present=present)
            if what == "drop":
                self._heard.add(each.id)
            elif what == "tell":
                name, told = self._participants.name(each.person_id), each.without_words_of(withheld)
                if await self._talk.tell_reminder(told, telling(told, name=name, now=now)):
                    return

    def on_reply(self, reply: Reply) -> None:
        """Take note that a reply is over: a reminder that was heard, or written because no voice works, is told."""
        if isinstance(reply.question, DueReminder) and (reply.text or reply.unsaid):
            self.on_told(reply.question.number)

    def on_told(self, number: int) -> None:
        """Take note that people know a reminder."""
        self._heard.add(number)
        self._look_at = 0.0
