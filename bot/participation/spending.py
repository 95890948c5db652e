"""What all servers use together: it is kept over restarts, and has limits of its own for a day and a month.

Days and months are those of UTC. Other processes of the bot use the same database, so their use counts too, as of the
last time that it was read.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

import structlog

from bot.cost import NOTHING, Cost
from bot.participation.costs import HOUR_S, CostLedger, ceiling_of, cost_in_words
from bot.texts.text import Text, sentence_of, verbatim
from compaction.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from bot.clock import Clock
    from bot.participation.settings import ParticipationSettings
    from bot.store.servers import UsageStore

log = structlog.get_logger()

# So much of the use may be lost in a crash.
SAVE_EVERY_S = 20.0
MONTH_S = 30 * 86_400.0

DAY_USED_UP = Text(
    "All my servers together have reached their limit for today. I am silent until {when}, but I still listen."
)
MONTH_USED_UP = Text(
    "All my servers together have reached their limit for this month. I am silent until {when}, but I still listen."
)


def begin_of_day(now: float) -> datetime:
    """Return when the day of a Unix time began, in UTC."""
    return datetime.fromtimestamp(now, UTC).replace(hour=0, minute=0, second=0, microsecond=0)


class Spending:
    """The use of all servers. `billed`: a model is called here; without one its limits silence nobody, whatever one has
    cost before. `on_used`: gets what a server uses, by its id. `run` is a task of the process, and `save` once more
    after it. Not thread-safe.
    """

    def __init__(
        self,
        store: UsageStore,
        settings: ParticipationSettings,
        *,
        clock: Clock,
        billed: bool = True,
        on_used: Callable[[int, Cost], None] = lambda guild_id, cost: None,
    ) -> None:
        self._billed = billed
        self._on_used = on_used
        self._store = store
        self._settings = settings
        self._clock = clock
        self._unsaved: defaultdict[int, Cost] = defaultdict(Cost)
        # Tokens of all servers that are stored.
        self._of_day = self._of_month = 0

    async def open_ledger(self, guild_id: int) -> CostLedger:
        """Return the ledger of a server, with what it has used in the last hour. Raises `StoreError`."""
        now, monotonic = self._clock.now(), self._clock.monotonic()
        ceiling = ceiling_of(self._settings, guild_id)
        used = await self._store.slots_of(guild_id, since=now - HOUR_S)
        return CostLedger(
            ceiling if self._billed else Cost(spoken_s=ceiling.spoken_s),
            # What was used in a slot counts until an hour after its end.
            used=[(monotonic + min(0.0, end - now), cost) for end, cost in used],
            on_added=partial(self._add, guild_id),
            used_up=self.used_up,
        )

    def used_up(self) -> Text | None:
        """Return that all servers together have used up their day or month, as people read it; None: they have not."""
        if not self._billed:
            return None
        waiting = sum(cost.tokens for cost in self._unsaved.values())
        # Discord shows each reader the time where they are.
        day, shown = begin_of_day(self._clock.now()), "<t:{:.0f}:f>"
        if 0 < self._settings.max_tokens_per_month <= self._of_month + waiting:
            next_month = (day.replace(day=1) + timedelta(days=31)).replace(day=1)
            return MONTH_USED_UP.fill(when=verbatim(shown.format(next_month.timestamp())))
        if 0 < self._settings.max_tokens_per_day <= self._of_day + waiting:
            return DAY_USED_UP.fill(when=verbatim(shown.format((day + timedelta(days=1)).timestamp())))
        return None

    async def month(self) -> Mapping[int, Cost]:
        """Return what each server has used in the last 30 days, as far as it is stored. Raises `StoreError`."""
        return await self._store.by_server(since=self._clock.now() - MONTH_S)

    async def together(self) -> Text:
        """Return what all servers have used today and in the last 30 days, as the operator reads it, or why that is not
        known. Never raises.
        """
        waiting = sum(self._unsaved.values(), NOTHING)
        day = begin_of_day(self._clock.now())
        try:
            today = sum((await self._store.by_server(since=day.timestamp())).values(), waiting)
            month = sum((await self.month()).values(), waiting)
        except StoreError as error:
            return sentence_of(error)
        return Text(
            "All servers together have used this today: {today}. In the last 30 days: {month}.",
            today=cost_in_words(today),
            month=cost_in_words(month),
        )

    async def run(self) -> None:
        """Store the use of the servers, and read that of other processes. Never returns."""
        while True:
            await self.save()
            await self._clock.sleep(SAVE_EVERY_S)

    async def save(self) -> None:
        """Store what was used. What cannot be stored waits for the next time."""
        now = self._clock.now()
        used, self._unsaved = self._unsaved, defaultdict(Cost)
        try:
            if used:
                await self._store.add(used, now=now)
        except StoreError as error:
            for guild_id, cost in used.items():
                self._unsaved[guild_id] += cost
            log.warning("use_not_stored", problem=error)
            return
        day, limits = begin_of_day(now), self._settings
        try:
            # Without a limit nobody asks.
            if limits.max_tokens_per_day:
                self._of_day = await self._tokens_since(day)
            if limits.max_tokens_per_month:
                self._of_month = await self._tokens_since(day.replace(day=1))
        except StoreError as error:
            log.warning("use_not_read", problem=error)

    async def _tokens_since(self, begun: datetime) -> int:
        used = await self._store.by_server(since=begun.timestamp())
        return sum(used.values(), NOTHING).tokens

    def _add(self, guild_id: int, cost: Cost) -> None:
        self._unsaved[guild_id] += cost
        self._on_used(guild_id, cost)
