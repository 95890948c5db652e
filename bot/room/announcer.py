"""Gives the notice that the bot listens to everybody in one voice channel.

The notice is written into the voice channel's own chat: at the start, and again for people who come later, once for
each person and session. Where the chat cannot be written it is spoken. Where neither works, `NotAnnouncedError` ends
the room, because nobody may be heard who could not know it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from bot.errors import BotError
from bot.texts.text import Text

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from bot.channel.port import Person, Place
    from bot.clock import Clock
    from bot.room.notice import ListeningNotice

log = structlog.get_logger()

# Notices are at least this far apart, so that several newcomers share one. Until it comes, they see the last one in the
# chat that they have just opened.
GATHER_S = 30.0


class NotAnnouncedError(BotError):
    """Nobody could be told that the bot listens. The message has the remedy."""


class Announcer:
    """The notices of one room. `speak` says sentences aloud and returns whether all of them were played.

    `asks`: people must press a button below the notice, so it must be written. `told`: who has had it in this session
    from a room before, which crashed. `on_told`: gets whoever is told now.

    *Ownership*: the room calls `begin` before anybody is heard, and runs `run` in a task.
    """

    def __init__(
        self,
        place: Place,
        notice: ListeningNotice,
        *,
        speak: Callable[[Sequence[Text]], Awaitable[bool]],
        clock: Clock,
        asks: bool = False,
        told: frozenset[int] = frozenset(),
        on_told: Callable[[frozenset[int]], None] = lambda _: None,
    ) -> None:
        self._asks = asks
        self._on_told = on_told
        self._place = place
        self._notice = notice
        self._speak = speak
        self._clock = clock
        self._told = told
        self._given_at = float("-inf")
        self._is_marked = False
        self._somebody_came = asyncio.Event()

    def has_told(self, person_id: int) -> bool:
        """Return whether a person has had the notice in this session, and may be heard. Thread-safe."""
        return person_id in self._told

    async def begin(self) -> None:
        """Give the notice, unless everybody present has had it in this session. Raises `NotAnnouncedError`.

        Nobody waits for Discord then: a room that goes on hears at once.
        """
        if not self._told or untold(self._place.members(), self._told):
            await self._give()

    def on_joined(self) -> None:
        """Somebody came into the channel. Does not wait."""
        self._somebody_came.set()

    async def run(self) -> None:
        """Give the notice to people who come later. Never returns. Raises `NotAnnouncedError`."""
        if not self._is_marked:
            # Usually it is there: a room that has crashed leaves it.
            await self._place.show_listening(on=True)
        while True:
            await self._somebody_came.wait()
            self._somebody_came.clear()
            if (wait_s := self._given_at + GATHER_S - self._clock.monotonic()) > 0:
                await self._clock.sleep(wait_s)
            if untold(self._place.members(), self._told):
                await self._give()

    async def _give(self) -> None:
        people = untold(self._place.members(), self._told)
        marked = await self._place.show_listening(on=True)
        if await self._place.write_notice(self._notice.written(marked=marked, asks=self._asks), asks=self._asks):
            how = "written"
        elif not self._asks and await self._speak(self._notice.spoken()):
            how = "spoken"
        else:
            log.warning("notice_refused", channel_id=self._place.channel_id)
            raise NotAnnouncedError(
                Text(
                    "I may only listen where people know it, and I could neither write into the chat of {channel} nor "
                    "speak there. Give my role the permissions View Channel and Send Messages in that channel, then "
                    "use /join.",
                    channel=self._place.name,
                )
            )
        now_told = frozenset(person.id for person in people)
        self._told |= now_told
        self._is_marked = True
        self._on_told(now_told)
        self._given_at = self._clock.monotonic()
        log.info("notice_given", how=how, person_count=len(people), marked=marked)


def untold(members: Iterable[Person], told: frozenset[int]) -> list[Person]:
    """Return the people among `members` who have not had the notice. Bots need none: they are never heard."""
    return [person for person in members if not person.is_bot and person.id not in told]
