"""Writes a reminder into its channel's chat when the bot is not there to say it, if somebody has pressed for that; and
drops those that nobody was there to hear.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from bot.channel.markdown import in_message
from bot.channel.port import ChatError, RoomChannel
from bot.reminders import LATE_S, telling
from bot.texts.text import verbatim
from compaction.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable

    from bot.clock import Clock
    from bot.participation.guild_state import GuildStates
    from bot.posts.renewal import MessageEditor
    from bot.store.reminders import Reminder, ReminderStore

log = structlog.get_logger()

LOOK_EVERY_S = 30.0
# How long it is tried again if Discord does not take one.
TRIED_S = 600.0


class DueReminders:
    """The reminders of one database that are due. `room_channel_of`: returns where the bot is on a server.
    `editor`: finds the channels of this process. `participation`: knows who opted out on a server.

    *Ownership*: the bot runs `run` in a task.
    """

    def __init__(
        self,
        store: ReminderStore,
        room_channel_of: Callable[[int], RoomChannel | None],
        editor: MessageEditor,
        participation: GuildStates,
        *,
        clock: Clock,
    ) -> None:
        self._store = store
        self._room_channel_of = room_channel_of
        self._editor = editor
        self._participation = participation
        self._clock = clock

    async def run(self) -> None:
        """Work until cancelled. *Cancellation* is safe at any point."""
        while True:
            try:
                await self.run_once()
            except StoreError as error:
                log.warning("reminders_not_read", problem=error)
            await self._clock.sleep(LOOK_EVERY_S)

    async def run_once(self) -> None:
        """Write and drop what is due. Raises `StoreError`."""
        for found in await self._store.due(self._clock.now()):
            # Somebody may have been forgotten while Discord took the one before.
            withheld = await self._participation.withheld_on(found.guild_id)
            if (each := await self._store.find(found.id)) is None or str(each.person_id) in withheld:
                continue
            here = self._room_channel_of(each.guild_id)
            late_s = self._clock.now() - each.due_at
            if late_s > LATE_S:
                await self._store.delete(each.id)
            elif each.in_chat and (here is None or here.channel_id != each.channel_id):
                channel = self._editor.find_channel(each.guild_id, each.channel_id)
                if channel is not None and (
                    await self._is_written(each.without_words_of(withheld), channel) or late_s > TRIED_S
                ):
                    await self._store.delete(each.id)

    async def _is_written(self, reminder: Reminder, channel: RoomChannel) -> bool:
        """Write it as far as who asked may write there themselves. Return whether Discord has taken it."""
        who = verbatim(f"<@{reminder.person_id}>")
        text = in_message(telling(reminder, name=who, now=self._clock.now()), channel.language)
        try:
            await channel.chat_for(reminder.person_id).post(text, calls_asker=True)
        except ChatError as error:
            log.warning("reminder_not_written", guild_id=reminder.guild_id, problem=error)
            return False
        return True
