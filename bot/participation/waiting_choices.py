"""Stores what servers choose about speaking (silence, mode, names), and tries again what could not be stored.

A choice is in effect at once, whether it is stored or not (`bot.participation.all_guilds`). One that cannot be stored
waits here, and a task tries again until it is stored. Unlike opt-outs (`waiting_opt_outs`) it is kept in no file: if
the bot is restarted while the database is away, it is lost, which the person who chose is told.

*Ownership*: one for each `GuildParticipations`. The task runs with the bot.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from bot.background_task import background_task
from bot.texts.text import Text, sentence_of
from compaction.errors import StoreError
from voice.retry_pause import retry_pause_s

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from bot.clock import Clock
    from bot.guild import GuildChoice, GuildChoices

    Change = Callable[[GuildChoice], GuildChoice]

log = structlog.get_logger()

FIRST_RETRY_S = 2.0
# A restart this long after the database is back has lost nothing.
LONGEST_RETRY_S = 30.0


# What people are told of a choice that waits, whether they made it by a command or aloud.
NOT_STORED_YET = Text(
    "This is in effect, but I could not store it yet. I keep trying. If I am restarted before that, it is lost: set it "
    "again. {error}"
)


class ChoiceWaitsError(StoreError):
    """A choice holds and could not be stored yet; it is tried again. The message says why it could not."""


@dataclass(frozen=True, slots=True)
class _WaitingChange:
    """What is to be stored. `by`: the member who chose."""

    change: Change
    by: int


class WaitingChoices:
    """The choices of all servers that are not stored yet. Not thread-safe."""

    def __init__(self, store: GuildChoices, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        # By server and by what is chosen, the newest change. What is being stored is here, too.
        self._waiting: dict[int, dict[str, _WaitingChange]] = {}
        # There is something for the task.
        self._due = asyncio.Event()

    async def put(self, guild_id: int, what: str, change: Change, *, by: int) -> None:
        """Store what `change` makes of a server's choice, with what waits of it. `what`: takes the place of a change of
        the same name that waits. `by`: the member who chose.

        `change` is called when it is stored, perhaps more than once, so it gives what holds by then. Raises
        `ChoiceWaitsError` if storing fails. *Cancellation*: it is tried again.
        """
        waiting = self._waiting.setdefault(guild_id, {})
        # The newest comes last.
        waiting.pop(what, None)
        waiting[what] = _WaitingChange(change, by)
        try:
            await self._store_waiting(guild_id)
        except StoreError as error:
            log.warning("choice_waits", guild_id=guild_id, user_id=by, what=what)
            raise ChoiceWaitsError(sentence_of(error)) from error
        finally:
            if guild_id in self._waiting:
                self._due.set()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Store what waits, for the duration of the block."""
        async with background_task(self._run(), name="waiting-choices"):
            yield

    async def _run(self) -> None:
        failures = 1
        while True:
            if not self._waiting:
                self._due.clear()
            await self._due.wait()
            await self._clock.sleep(retry_pause_s(failures, first_s=FIRST_RETRY_S, longest_s=LONGEST_RETRY_S))
            failures = 1 if await self._store_all() else failures + 1

    async def _store_all(self) -> bool:
        """Store what waits. Returns False after the first failure."""
        for guild_id in list(self._waiting):
            try:
                await self._store_waiting(guild_id)
            except StoreError:
                if (refused := self._waiting.pop(guild_id, None)) is not None:
                    # The others come first next time: it may be this one alone that is refused.
                    self._waiting[guild_id] = refused
                return False
            log.info("waiting_choice_stored", guild_id=guild_id)
        return True

    async def _store_waiting(self, guild_id: int) -> None:
        """Store what waits of a server's choice, if anything does. Raises `StoreError`."""
        stored = tuple(self._waiting.get(guild_id, {}).items())
        if not stored:
            return

        def changed(choice: GuildChoice) -> GuildChoice:
            for _, each in stored:
                choice = each.change(choice)
            return choice

        await self._store.choose(guild_id, changed, by=stored[-1][1].by)
        waiting = self._waiting.get(guild_id, {})
        for what, each in stored:
            # What was chosen meanwhile is stored by whoever chose it.
            if waiting.get(what) is each:
                del waiting[what]
        if not waiting:
            self._waiting.pop(guild_id, None)
