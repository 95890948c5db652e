"""Keeps opt-outs and opt-ins that could not be stored, and stores them as soon as the database is back.

It stands before the store of opt-outs. A choice is in effect at once, whether it is stored or not
(`bot.participation.all_guilds`). One that is not stored waits here, and of each person only the newest does; a task
tries again until all are stored. Meanwhile opt-outs are also kept in a file (`opt_out_file`), so that nobody is heard
again because the bot was restarted, or killed before the database has answered. Where the file cannot be written
either, the person is told so.

*Ownership*: one for each process that answers commands. The task runs with the bot. The file is written in tasks of
their own, which go on if who waits for them is cancelled.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Protocol

import structlog

from bot.background_task import background_task, logged_task
from bot.participation.opt_out_file import read_opt_outs, write_opt_outs
from bot.texts.text import Text, sentence_of
from compaction.errors import StoreError
from voice.retry_pause import retry_pause_s

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from bot.clock import Clock

log = structlog.get_logger()

# On one bot, while its database is away. Opting out has no other limit, and the file is written anew for each.
MOST_WAITING = 1_000
# On one server, so that one that many people join to opt out leaves room for the others.
MOST_WAITING_ON_A_SERVER = 250
# So many commands wait for the database at once. Who comes then is told at once that the choice waits.
MOST_AT_ONCE = 100
BUSY = Text("Many people chose at the same time.")
FIRST_RETRY_S = 2.0
# A person who asks again hears what holds within this time after the database is back.
LONGEST_RETRY_S = 30.0
# So long after a failure nobody waits for another one: a database that does not answer takes 25 s to fail.
_KNOWN_S = 5.0
# For the file: a disk that does not answer must keep neither a command from its end nor the bot.
SAVE_WITHIN_S = 5.0


class OptOuts(Protocol):
    """The store of the people who opted out of being heard; `bot.store.guilds` implements it. Raises `StoreError`."""

    async def of(self, guild_id: int) -> frozenset[int]:
        """Return the people who opted out on that guild."""

    async def put(self, guild_id: int, person_id: int, *, out: bool) -> None:
        """Store whether a person has opted out there."""


class OptOutWaitsError(StoreError):
    """A choice holds and could not be stored yet; it is tried again. The message says why it could not.

    `outlives_restart`: it is an opt-out, and holds after a restart too.
    """

    def __init__(self, problem: Text | str, *, outlives_restart: bool) -> None:
        super().__init__(problem)
        self.outlives_restart = outlives_restart


class WaitingOptOuts:
    """The opt-outs of all servers, those that wait included. Implements `OptOuts`.

    `file`: where opt-outs that wait are kept; it is read here. Not thread-safe.
    """

    def __init__(self, store: OptOuts, *, file: Path, clock: Clock) -> None:
        self._store = store
        self._file = file
        self._clock = clock
        # What is in the file.
        self._saved = read_opt_outs(file)
        # By server and person, the newest choice: whether they are out. What is being stored is here, too.
        self._waiting: dict[tuple[int, int], bool] = dict.fromkeys(sorted(self._saved)[:MOST_WAITING], True)
        self._problem: Text | str | None = None
        self._failed_at = 0.0
        # Held while one is stored, or the file is written, so that no older choice is written last.
        self._storing = asyncio.Lock()
        self._saving = asyncio.Lock()
        # The tasks that write the file, or wait to do so: one of each at most.
        self._writes: set[asyncio.Task[None]] = set()
        self._next_write: asyncio.Task[None] | None = None
        # Those that somebody is storing, or waits to store; some more than once.
        self._in_hand: list[tuple[int, int]] = []
        # There may be something for the task.
        self._due = asyncio.Event()
        self._due.set()

    @property
    def waiting(self) -> int:
        """Return how many choices are not stored yet."""
        return len(self._waiting)

    async def of(self, guild_id: int) -> frozenset[int]:
        """Return the people who opted out on that guild. Raises `StoreError`."""
        # One that is stored meanwhile may be in neither the rows that were read nor those that wait now.
        before = dict(self._waiting)
        out = set(await self._store.of(guild_id))
        for (place, person_id), is_out in {**before, **self._waiting}.items():
            if place == guild_id:
                (out.add if is_out else out.discard)(person_id)
        return frozenset(out)

    async def put(self, guild_id: int, person_id: int, *, out: bool) -> None:
        """Store whether a person has opted out there.

        Raises `OptOutWaitsError` if that fails and is tried again, and `StoreError` if it fails and too many wait
        already. An opt-out then takes the place of an opt-in. *Cancellation*: it is tried again.
        """
        key = guild_id, person_id
        with self.keeping(guild_id, person_id, out), self._held(key):
            if key in self._waiting:
                await self._store_or_keep(key, out=out)
                return
            self._refuse_if_busy()
            async with self._storing:
                self._refuse_if_away()
                await self._ask_store(key, out=out)

    @contextmanager
    def keeping(self, guild_id: int, person_id: int, out: bool) -> Iterator[None]:
        """Have a choice wait from now on, and begin to write it into the file if it is an opt-out.

        A database that hangs takes 25 s to fail, and the bot may be killed meanwhile. What nobody has stored (`put`) at
        the end of the block is stored by the task. A choice for which there is no room is not kept.
        """
        key = guild_id, person_id
        if self._has_room(key, out=out):
            self._waiting[key] = out
            if self._has_to_save:
                self._begin_to_save()
        try:
            yield
        finally:
            if key in self._waiting:
                self._due.set()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Store what waits, for the duration of the block. Afterwards the opt-outs that still wait are in the file."""
        try:
            async with background_task(self._run(), name="waiting-opt-outs"):
                yield
        finally:
            await self._save_at_the_end()

    async def _run(self) -> None:
        failures = 0
        while True:
            if not self._waiting:
                self._due.clear()
                await self._due.wait()
            if self._problem is not None:
                pause_s = retry_pause_s(max(failures, 1), first_s=FIRST_RETRY_S, longest_s=LONGEST_RETRY_S)
                await self._clock.sleep(pause_s)
            failures = 0 if await self._store_all() else failures + 1

    async def _store_all(self) -> bool:
        """Store what waits. Returns False after the first failure."""
        for key in list(self._waiting):
            if key not in self._waiting:
                continue
            try:
                with self._held(key):
                    await self._store_newest(key)
            except StoreError:
                if key in self._waiting:
                    # The others come first next time: it may be this one alone that is refused.
                    self._waiting[key] = self._waiting.pop(key)
                await self._save()
                return False
            log.info("waiting_opt_out_stored", guild_id=key[0], user_id=key[1])
        return True

    async def _store_newest(self, key: tuple[int, int], *, refuses: bool = False) -> None:
        """Store the newest choice of a person, if nobody else has done so. `refuses`: not if it has just failed."""
        async with self._storing:
            if refuses:
                self._refuse_if_away()
            if (out := self._waiting.get(key)) is None:
                return
            await self._ask_store(key, out=out)
            if self._waiting.get(key) == out:
                del self._waiting[key]
        if key in self._saved or self._writes:
            await self._save()

    async def _store_or_keep(self, key: tuple[int, int], *, out: bool) -> None:
        """Store a choice that waits, or see that it is in the file. Raises `OptOutWaitsError`."""
        try:
            self._refuse_if_away()
            self._refuse_if_busy()
            await self._store_newest(key, refuses=True)
        except StoreError as error:
            await self._save()
            if key not in self._waiting:
                # Meanwhile the task has stored it.
                return
            log.warning("opt_out_waits", guild_id=key[0], user_id=key[1], out=out, waiting=self.waiting)
            raise OptOutWaitsError(sentence_of(error), outlives_restart=out and key in self._saved) from error

    async def _ask_store(self, key: tuple[int, int], *, out: bool) -> None:
        """Have the database store a choice, and remember why it could not. Raises `StoreError`."""
        guild_id, person_id = key
        try:
            await self._store.put(guild_id, person_id, out=out)
        except StoreError as error:
            self._problem, self._failed_at = sentence_of(error), self._clock.monotonic()
            raise
        self._problem = None

    def _refuse_if_busy(self) -> None:
        """Raise `StoreError` if too many wait for the database, this one included."""
        if len(self._in_hand) > MOST_AT_ONCE:
            raise StoreError(BUSY)

    def _refuse_if_away(self) -> None:
        if self._problem is not None and self._clock.monotonic() - self._failed_at < _KNOWN_S:
            raise StoreError(self._problem)

    def _has_room(self, key: tuple[int, int], *, out: bool) -> bool:
        """Return whether a choice can wait. If need be, an opt-out makes room by dropping the oldest opt-in."""
        if key in self._waiting:
            return True
        here = [each for each in self._waiting if each[0] == key[0]]
        is_full_here = len(here) >= MOST_WAITING_ON_A_SERVER
        if not is_full_here and self.waiting < MOST_WAITING:
            return True
        if not out:
            return False
        waiting = here if is_full_here else list(self._waiting)
        opt_ins = (each for each in waiting if not self._waiting[each] and each not in self._in_hand)
        if (dropped := next(opt_ins, None)) is None:
            return False
        # Whoever it was is still heard, until the bot is started again. They cannot be told any more: nobody writes to
        # people by themselves. So /opt-in has told them what to do if they are not heard then.
        del self._waiting[dropped]
        log.warning("waiting_opt_in_dropped", guild_id=dropped[0], user_id=dropped[1])
        return True

    @contextmanager
    def _held(self, key: tuple[int, int]) -> Iterator[None]:
        """Let nobody drop this one: who stores it would take it for stored."""
        self._in_hand.append(key)
        try:
            yield
        finally:
            self._in_hand.remove(key)

    @property
    def _opt_outs(self) -> frozenset[tuple[int, int]]:
        return frozenset(key for key, out in self._waiting.items() if out)

    @property
    def _has_to_save(self) -> bool:
        """Return whether the file has others than the opt-outs that wait, or may have: it is being written."""
        return bool(self._writes) or self._opt_outs != self._saved

    async def _save(self) -> None:
        """Write the opt-outs that wait into the file, if it has others. Waits for `SAVE_WITHIN_S` at most.

        *Cancellation*: they are written all the same.
        """
        if not self._has_to_save:
            return
        writing = self._begin_to_save()
        await asyncio.wait({writing}, timeout=SAVE_WITHIN_S)
        self._report_if_late(writing)

    def _begin_to_save(self) -> asyncio.Task[None]:
        """Return the task that writes the file next. What is written is what waits when it begins."""
        if self._next_write is None:
            self._next_write = logged_task(self._write(), name="opt-outs-file")
            self._writes.add(self._next_write)
            self._next_write.add_done_callback(self._writes.discard)
        return self._next_write

    async def _save_at_the_end(self) -> None:
        """Write the file for the last time. It takes `SAVE_WITHIN_S` at most, or twice that if it is cancelled."""
        # It comes after what is being written.
        writing = self._begin_to_save()
        try:
            await asyncio.wait({writing}, timeout=SAVE_WITHIN_S)
        except asyncio.CancelledError:
            await asyncio.wait({writing}, timeout=SAVE_WITHIN_S)
            raise
        finally:
            self._report_if_late(writing)

    def _report_if_late(self, writing: asyncio.Task[None]) -> None:
        if not writing.done():
            log.warning("waiting_opt_outs_not_kept", path=str(self._file), error_class="TimeoutError")

    async def _write(self) -> None:
        async with self._saving:
            self._next_write = None
            opt_outs = self._opt_outs
            if opt_outs == self._saved:
                return
            try:
                await asyncio.to_thread(write_opt_outs, self._file, opt_outs)
            except OSError as error:
                log.warning("waiting_opt_outs_not_kept", path=str(self._file), error_class=type(error).__name__)
            else:
                self._saved = opt_outs
