"""How the bot takes part on all servers: read when it is first needed, and changed by what people choose.

The process has one `GuildParticipations`, because servers outlive rooms. A choice takes effect at once and is stored
afterwards. If the store fails, the person who chose gets `NotStoredYetError`: the choice stays in effect as long as the
process runs, and is stored when the store works again. If the server's participation could not be read before, only an
opt-out holds; everything else is `ParticipationUnreadError`, and nothing was changed.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol

import structlog

from bot.background_task import background_task
from bot.errors import BotError
from bot.guild import VoiceMode
from bot.participation.costs import CostCeiling, CostLedger
from bot.participation.guild_participation import GuildParticipation
from bot.texts.text import Text, sentence_of
from compaction.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Collection

    from bot.clock import Clock
    from bot.guild import GuildChoice, GuildChoices, Silence
    from bot.participation.settings import ParticipationSettings

log = structlog.get_logger()

# A restart this long after the database is back has lost nothing.
RETRY_S = 5.0
# While the database is away. They are in effect all the same.
MOST_UNSTORED = 10_000

MAY_SPEAK = Text("I may speak again.")
SILENCED_FOR_GOOD = Text(
    "A moderator has silenced me on this server. Only a moderator (who may manage the server or its channels, or mute "
    "members) can let me talk again, with /talk."
)
TOO_MANY = Text("Too many choices wait for the database.")
LISTENS_ONLY = Text("In this session I only write down what is said. Send me away with /leave and use /join.")
NOT_STORED_YET = Text(
    "This is in effect, but I could not store it yet. I keep trying. If I am restarted before that, it is lost: choose "
    "it again. {error}"
)


class OptOuts(Protocol):
    """The store of the people who opted out of being heard; `bot.store.guilds` implements it. Raises `StoreError`."""

    async def of(self, guild_id: int) -> frozenset[int]:
        """Return the people who opted out on that guild."""

    async def put(self, guild_id: int, person_id: int, *, out: bool) -> None:
        """Store whether a person has opted out there."""


class NotHereError(BotError):
    """The bot is in no voice channel of that server, so there is no session to silence."""


class ListensOnlyError(BotError):
    """Somebody wants the bot to speak in a session in which it only writes down. The message says what to do first."""


class OptedOutError(BotError):
    """Somebody who opted out agreed to be heard. The message says what to do first."""


class ParticipationUnreadError(StoreError):
    """How the bot takes part on a server cannot be read, so nothing was changed. The message says why."""


class NotStoredYetError(StoreError):
    """A choice is in effect and could not be stored yet; it is tried again. The message says why it could not."""


class _Key(NamedTuple):
    """What is chosen on a server. `person_id`: of whom; 0: of nobody in particular."""

    guild_id: int
    what: str
    person_id: int = 0


class GuildParticipations:
    """The participation of every server. Not thread-safe.

    `wake_names`: the names in the settings. `asks`: whether the bot hears only people of that server who agreed.
    `serves`: whether this process serves a server; what another process serves changes there.

    *Ownership*: `running` owns the task that stores what could not be stored at once.
    """

    def __init__(
        self,
        choices: GuildChoices,
        opt_outs: OptOuts,
        settings: ParticipationSettings,
        *,
        wake_names: tuple[str, ...],
        clock: Clock,
        asks: Callable[[int], bool] = lambda _: False,
        serves: Callable[[int], bool] = lambda _: True,
    ) -> None:
        self._asks = asks
        self._serves = serves
        self._choices = choices
        self._opt_outs = opt_outs
        self._clock = clock
        self.settings = settings
        self.wake_names = wake_names
        self._guilds: dict[int, GuildParticipation] = {}
        # Held while a server's participation is read, which other tasks then wait for.
        self._reading: defaultdict[int, asyncio.Lock] = defaultdict(asyncio.Lock)
        # What stores a choice. What is being stored is here, too.
        self._unstored: dict[_Key, Callable[[], Awaitable[object]]] = {}
        # By server and what is chosen: held while it is stored, so that no older choice is stored last.
        self._storing: defaultdict[tuple[int, str], asyncio.Lock] = defaultdict(asyncio.Lock)
        # There is something for the task.
        self._due = asyncio.Event()
        # Why the last try for a server failed: the next one is the task's, so that nobody waits for another failure.
        self._problems: dict[int, Text | str] = {}

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Store choices that could not be stored before, for the duration of the block."""
        async with background_task(self._store_again(), name="unstored-choices"):
            yield

    async def _store_again(self) -> None:
        while True:
            if await self._store_all():
                await self._due.wait()
                self._due.clear()
            else:
                await self._clock.sleep(RETRY_S)

    async def _store_all(self) -> bool:
        """Try to store what is not. Return whether nothing was refused."""
        refused = 0
        for key in list(self._unstored):
            try:
                await self._try_to_store(key)
            except StoreError as error:
                # The others are tried too: it may be this one alone that is refused.
                refused += 1
                log.debug("choice_waits", guild_id=key.guild_id, problem=error)
        return not refused

    async def _store(self, key: _Key, write: Callable[[], Awaitable[object]]) -> None:
        """Store a choice that is in effect. `write` stores what holds when it is called, perhaps more than once.

        Raises `NotStoredYetError`; at once while the store fails. *Cancellation*: it is tried again.
        """
        if key not in self._unstored and len(self._unstored) >= MOST_UNSTORED:
            raise StoreError(TOO_MANY)
        self._unstored[key] = write
        try:
            if key.guild_id in self._problems:
                raise StoreError(self._problems[key.guild_id])
            await self._try_to_store(key)
        except StoreError as error:
            log.warning("choice_waits", guild_id=key.guild_id, waiting=len(self._unstored), problem=error)
            raise NotStoredYetError(sentence_of(error)) from error
        finally:
            if key in self._unstored:
                self._due.set()

    async def _try_to_store(self, key: _Key) -> None:
        async with self._storing[key.guild_id, key.what]:
            write = self._unstored.get(key)
            if write is None:
                return
            try:
                await write()
            except StoreError as error:
                self._problems[key.guild_id] = sentence_of(error)
                raise
            self._problems.pop(key.guild_id, None)
            if self._unstored.get(key) is write:
                del self._unstored[key]

    async def of_guild(self, guild_id: int) -> GuildParticipation:
        """Return a server's participation.

        Raises `ParticipationUnreadError`: without the opt-outs the bot may hear nobody, and without the server's choice
        it may not speak, because a moderator may have silenced it.
        """
        if (known := self._guilds.get(guild_id)) is not None:
            return known
        async with self._reading[guild_id]:
            return await self._read(guild_id)

    async def _read(self, guild_id: int) -> GuildParticipation:
        if (known := self._guilds.get(guild_id)) is not None:
            return known
        try:
            # Somebody may have opted out before the server was first read.
            for key in [each for each in self._unstored if each.guild_id == guild_id]:
                await self._try_to_store(key)
            opted_out = await self._opt_outs.of(guild_id)
            choice = await self._choices.choice(guild_id)
        except StoreError as error:
            raise ParticipationUnreadError(sentence_of(error)) from error
        guild = self._guilds[guild_id] = GuildParticipation(
            guild_id,
            choice.voice_mode or VoiceMode(self.settings.voice_mode),
            choice.wake_names or self.wake_names,
            CostLedger(CostCeiling.from_settings(self.settings)),
            silence=choice.silence,
            opted_out=opted_out,
            asks=self._asks(guild_id),
        )
        return guild

    async def begin_session(self, guild_id: int, session_id: str, *, listens_only: bool = False) -> GuildParticipation:
        """Return a server's participation for a session that begins or goes on in a new room. Raises `StoreError`.

        `listens_only`: the bot says nothing in it. Only now what the server has chosen about consent takes effect:
        people who are heard already were not asked.
        """
        guild = await self.of_guild(guild_id)
        guild.asks = self._asks(guild_id)
        guild.begin_session(session_id, listens_only=listens_only)
        return guild

    def names_of(self, guild_id: int) -> tuple[str, ...]:
        """Return what the bot is called there; as the settings say, where no room was yet."""
        guild = self._guilds.get(guild_id)
        return self.wake_names if guild is None else guild.wake_names

    # -- silence ---------------------------------------------------------------------------------------------

    async def silence_for_now(self, guild_id: int, *, by: int, minutes: float | None = None) -> None:
        """Silence the bot there: for `minutes`, also in another session, or until its session ends. Raises
        `NotHereError`, `StoreError`.
        """
        guild = await self.of_guild(guild_id)
        if guild.room is None:
            raise NotHereError(Text("I am not in a voice channel here."))
        if minutes is None:
            silence = guild.silence.silence_session(guild.room.session_id)
        else:
            silence = guild.silence.silence_until(self._clock.now() + 60 * minutes)
        await self._set_silence(guild, silence, by=by, how="command")

    async def silence_always(self, guild_id: int, *, by: int) -> None:
        """Silence the bot there until a moderator lets it talk. Raises `StoreError`."""
        guild = await self.of_guild(guild_id)
        await self._set_silence(guild, guild.silence.silence_always(), by=by, how="moderator")

    def store_silence_later(self, guild: GuildParticipation, *, by: int) -> None:
        """Have a silence stored that somebody asked for aloud and that is already in effect. Does not wait."""
        log.info("silenced", guild_id=guild.guild_id, user_id=by, how="voice", always=guild.silence.always)
        self._unstored[_Key(guild.guild_id, "silence")] = partial(self._write_silence, guild, by=by)
        self._due.set()

    async def lift_silence(self, guild_id: int, *, by: int, moderator: bool) -> bool:
        """Lift the silence there; return whether the bot may speak now. Raises `ListensOnlyError`, `StoreError`."""
        guild = await self.of_guild(guild_id)
        if guild.listens_only and guild.room is not None:
            raise ListensOnlyError(LISTENS_ONLY)
        guild.silence = guild.silence.lift(by_moderator=moderator)
        log.info("silence_lifted", guild_id=guild_id, user_id=by, still_silent=guild.silence.always)
        await self._store_silence(guild, by=by)
        return not guild.silence.always

    async def _set_silence(self, guild: GuildParticipation, silence: Silence, *, by: int, how: str) -> None:
        guild.silence = silence
        if guild.room is not None:
            guild.room.stop_speaking()
        log.info("silenced", guild_id=guild.guild_id, user_id=by, how=how, always=silence.always)
        await self._store_silence(guild, by=by)

    async def _store_silence(self, guild: GuildParticipation, *, by: int) -> None:
        await self._store(_Key(guild.guild_id, "silence"), partial(self._write_silence, guild, by=by))

    async def _write_silence(self, guild: GuildParticipation, *, by: int) -> None:
        await self._choices.choose(guild.guild_id, lambda choice: replace(choice, silence=guild.silence), by=by)

    # -- mode and names --------------------------------------------------------------------------------------

    async def choose_mode(self, guild_id: int, mode: VoiceMode | None, *, by: int) -> None:
        """Choose when the bot speaks there; None: the settings apply. Raises `StoreError`.

        It replaces what was chosen before, also if that cannot be read.
        """
        guild = await self._known_or_repaired(guild_id, lambda now: replace(now, voice_mode=mode), by=by)
        guild.voice_mode = mode or VoiceMode(self.settings.voice_mode)
        log.info("voice_mode_chosen", guild_id=guild_id, user_id=by, voice_mode=guild.voice_mode.value)
        await self._choose(
            guild_id,
            "voice_mode",
            lambda choice: replace(choice, voice_mode=mode),
            by=by,
        )

    async def choose_names(self, guild_id: int, names: tuple[str, ...] | None, *, by: int) -> None:
        """Choose the bot's names there; None: the settings apply. Raises `StoreError`.

        They replace what was chosen before, also if that cannot be read.
        """
        guild = await self._known_or_repaired(guild_id, lambda now: replace(now, wake_names=names), by=by)
        guild.wake_names = names or self.wake_names
        log.info("wake_names_chosen", guild_id=guild_id, user_id=by, name_count=len(guild.wake_names))
        await self._choose(
            guild_id,
            "wake_names",
            lambda choice: replace(choice, wake_names=names),
            by=by,
        )

    async def _choose(self, guild_id: int, what: str, change: Callable[[GuildChoice], GuildChoice], *, by: int) -> None:
        await self._store(_Key(guild_id, what), lambda: self._choices.choose(guild_id, change, by=by))

    async def _known_or_repaired(
        self, guild_id: int, change: Callable[[GuildChoice], GuildChoice], *, by: int
    ) -> GuildParticipation:
        """Return a server's participation, after `change` was stored if the stored choice could not be read before."""
        try:
            return await self.of_guild(guild_id)
        except ParticipationUnreadError as unread:
            try:
                await self._choices.choose(guild_id, change, by=by)
            except StoreError as error:
                raise unread from error
            return await self.of_guild(guild_id)

    # -- consent and opt-outs ---------------------------------------------------------------------------------------

    def opted_out_of(self, guild_id: int | None) -> frozenset[str]:
        """Return the ids of the people who opted out there, as turns have them. Empty before a room was there."""
        guild = None if guild_id is None else self._guilds.get(guild_id)
        return frozenset() if guild is None else guild.opted_out_ids()

    async def withheld_on(self, guild_id: int) -> frozenset[str]:
        """Return the ids of the people who opted out there, also before a room was there. Raises `StoreError`."""
        if not self._serves(guild_id):
            return frozenset(map(str, await self._opt_outs.of(guild_id)))
        return (await self.of_guild(guild_id)).opted_out_ids()

    def on_forgetting(self, person_id: int) -> None:
        """Drop what a person has said or shown until now and that is not recorded yet, in all rooms."""
        guilds = list(self._guilds.values())
        for guild in guilds:
            if guild.room is not None:
                guild.room.on_forgetting(person_id)

    def on_forgotten(self, sessions: Collection[str]) -> None:
        """Drop what may hold forgotten words, in the rooms with these sessions."""
        for guild in list(self._guilds.values()):
            if guild.room is not None and guild.room.session_id in sessions:
                guild.room.on_forgotten()

    async def set_agreed(self, guild_id: int, person_id: int, *, agrees: bool) -> None:
        """Hear a person on that guild until the session ends (`agrees`), or no longer. Takes effect at once.

        Raises `OptedOutError` if they agree but have opted out, and `StoreError`.
        """
        guild = await self.of_guild(guild_id)
        withdraws = not agrees and guild.asks and not guild.excludes(person_id)
        if agrees and person_id in guild.opted_out:
            raise OptedOutError(
                Text("You have opted out of being heard on this server. Use /opt-in first, then press again.")
            )
        agreed = guild.consent.agreed
        guild.consent.agreed = agreed | {person_id} if agrees else agreed - {person_id}
        if withdraws and guild.room is not None:
            guild.room.on_opted_out(person_id)
        log.info("consent_changed", guild_id=guild_id, user_id=person_id, agrees=agrees)

    def must_agree(self, guild_id: int, person_id: int) -> bool:
        """Return whether the bot hears a person on that guild only once they have agreed, and they have not."""
        guild = self._guilds.get(guild_id)
        if guild is None or guild.room is None:
            return self._asks(guild_id)
        return guild.asks and person_id not in guild.consent.agreed

    async def set_opt_out(self, guild_id: int, person_id: int, *, out: bool) -> None:
        """Opt a person out of being heard on that guild (`out`), or in again. Takes effect at once. Raises
        `NotStoredYetError` if it is stored later.
        """
        if (guild := self._guilds.get(guild_id)) is None:
            # Held, so that nobody meanwhile reads the opt-outs of before.
            async with self._reading[guild_id]:
                if (guild := self._guilds.get(guild_id)) is None:
                    put = partial(self._opt_outs.put, guild_id, person_id, out=out)
                    await self._store(_Key(guild_id, "opt-out", person_id), put)
                    return
        self._apply_opt_out(guild, person_id, out=out)
        await self._store(_Key(guild_id, "opt-out", person_id), partial(self._store_opt_out, guild, person_id))

    async def _store_opt_out(self, guild: GuildParticipation, person_id: int) -> None:
        await self._opt_outs.put(guild.guild_id, person_id, out=person_id in guild.opted_out)

    def _apply_opt_out(self, guild: GuildParticipation, person_id: int, *, out: bool) -> None:
        # Again and again, it would only interrupt the bot.
        is_new = out and person_id not in guild.opted_out
        guild.opted_out = guild.opted_out | {person_id} if out else guild.opted_out - {person_id}
        guild.consent.agreed -= {person_id}
        if is_new and guild.room is not None:
            guild.room.on_opted_out(person_id)
        log.info("opt_out_changed", guild_id=guild.guild_id, user_id=person_id, out=out)
