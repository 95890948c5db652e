"""How the bot stands on each server: when it speaks, what it is called, whether it is silenced, what it has cost.

One for the process, because servers outlive rooms. What is chosen holds at once and is stored behind it: a store that
fails is told to who chose, and takes nothing back.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

import structlog

from bot.errors import BotError
from bot.guild import Silence, VoiceMode
from bot.participation.ledger import Ceiling, Ledger
from compaction.errors import StoreError

if TYPE_CHECKING:
    from bot.clock import Clock
    from bot.guild import GuildChoices
    from bot.participation.settings import ParticipationSettings

log = structlog.get_logger()


class NotHereError(BotError):
    """The bot is in no voice channel of that server, so there is nothing to silence for now."""


class OptOutShelf(Protocol):
    """Where it is kept who does not want to be heard; `bot.store.guilds` is it. Raises `StoreError`."""

    async def of(self, guild_id: int) -> frozenset[int]:
        """Return who does not want to be heard on that guild."""

    async def put(self, guild_id: int, person_id: int, *, out: bool) -> None:
        """Store that a person does not want to be heard there, or does again."""


class Voice(Protocol):
    """A room that can be silenced; `bot.participation.part.Participation` is it."""

    @property
    def session_id(self) -> str:
        """Return the room's session."""

    def fall_silent(self) -> None:
        """Stop speaking at once, and forget what was to be said next."""


@dataclass(slots=True)
class GuildParticipation:
    """What holds on one server now. `opted_out` is read by other threads too, so it is replaced and never changed."""

    guild_id: int
    voice_mode: VoiceMode
    wake_names: tuple[str, ...]
    ledger: Ledger
    silence: Silence = field(default_factory=Silence)
    opted_out: frozenset[int] = frozenset()
    voice: Voice | None = None
    # When people were last told that the ceiling is reached, monotonic.
    ceiling_told_at: float | None = None


class GuildParticipations:
    """The standing of every server. Not thread-safe. `wake_names`: those of the settings."""

    def __init__(
        self,
        choices: GuildChoices,
        opt_outs: OptOutShelf,
        settings: ParticipationSettings,
        *,
        wake_names: tuple[str, ...],
        clock: Clock,
    ) -> None:
        self._choices = choices
        self._opt_outs = opt_outs
        self._clock = clock
        self.settings = settings
        self.wake_names = wake_names
        self._standings: dict[int, GuildParticipation] = {}

    async def standing(self, guild_id: int) -> GuildParticipation:
        """Return how the bot stands there. A choice that cannot be read leaves the settings, and the log tells.

        Raises `StoreError` when it cannot be known who has opted out: nobody is heard without knowing that.
        """
        if (known := self._standings.get(guild_id)) is not None:
            return known
        opted_out = await self._opt_outs.of(guild_id)
        standing = GuildParticipation(
            guild_id,
            VoiceMode(self.settings.voice_mode),
            self.wake_names,
            Ledger(Ceiling.of(self.settings)),
            opted_out=opted_out,
        )
        try:
            choice = await self._choices.choice(guild_id)
            standing.voice_mode = choice.voice_mode or standing.voice_mode
            standing.wake_names = choice.wake_names or standing.wake_names
            standing.silence = choice.silence
        except StoreError as error:
            log.warning("guild_choice_unread", guild_id=guild_id, problem=str(error))
        # Somebody else may have read it meanwhile, and changed it.
        return self._standings.setdefault(guild_id, standing)

    # -- silence ---------------------------------------------------------------------------------------------

    async def quiet(self, guild_id: int, *, by: int, minutes: float | None = None) -> None:
        """Silence the bot there for now: for `minutes`, or the session. Raises `NotHereError`, `StoreError`."""
        standing = await self.standing(guild_id)
        if standing.voice is None:
            raise NotHereError("I am not in a voice channel here.")
        until = None if minutes is None else self._clock.now() + 60 * minutes
        silence = standing.silence.silence_session(standing.voice.session_id, until=until)
        await self._silence(standing, silence, by=by, how="command")

    async def quiet_always(self, guild_id: int, *, by: int) -> None:
        """Silence the bot there until a moderator lets it talk. Raises `StoreError`."""
        standing = await self.standing(guild_id)
        await self._silence(standing, standing.silence.silence_always(), by=by, how="moderator")

    async def keep_silence(self, standing: GuildParticipation, *, by: int) -> None:
        """Store what a room was told aloud, which holds already. Raises `StoreError`."""
        log.info("silenced", guild_id=standing.guild_id, user_id=by, how="voice", always=standing.silence.always)
        await self._store(standing, by=by)

    async def talk(self, guild_id: int, *, by: int, moderator: bool) -> bool:
        """Let the bot talk there; return whether it may now. Raises `StoreError`."""
        standing = await self.standing(guild_id)
        standing.silence = standing.silence.lift(by_moderator=moderator)
        log.info("silence_lifted", guild_id=guild_id, user_id=by, still_silent=standing.silence.always)
        await self._store(standing, by=by)
        return not standing.silence.always

    async def _silence(self, standing: GuildParticipation, silence: Silence, *, by: int, how: str) -> None:
        standing.silence = silence
        if standing.voice is not None:
            standing.voice.fall_silent()
        log.info("silenced", guild_id=standing.guild_id, user_id=by, how=how, always=silence.always)
        await self._store(standing, by=by)

    # -- mode and names --------------------------------------------------------------------------------------

    async def choose_mode(self, guild_id: int, mode: VoiceMode | None, *, by: int) -> None:
        """Choose when the bot speaks there; None: as the settings say. Raises `StoreError`."""
        standing = await self.standing(guild_id)
        standing.voice_mode = mode or VoiceMode(self.settings.voice_mode)
        log.info("voice_mode_chosen", guild_id=guild_id, user_id=by, voice_mode=standing.voice_mode.value)
        await self._store(standing, by=by, default_mode=mode is None)

    async def choose_names(self, guild_id: int, names: tuple[str, ...] | None, *, by: int) -> None:
        """Choose what the bot is called there; None: as the settings say. Raises `StoreError`."""
        standing = await self.standing(guild_id)
        standing.wake_names = names or self.wake_names
        log.info("wake_names_chosen", guild_id=guild_id, user_id=by, name_count=len(standing.wake_names))
        await self._store(standing, by=by, default_names=names is None)

    async def _store(
        self,
        standing: GuildParticipation,
        *,
        by: int,
        default_mode: bool | None = None,
        default_names: bool | None = None,
    ) -> None:
        choice = await self._choices.choice(standing.guild_id)
        if default_mode is not None:
            choice = replace(choice, voice_mode=None if default_mode else standing.voice_mode)
        if default_names is not None:
            choice = replace(choice, wake_names=None if default_names else standing.wake_names)
        await self._choices.choose(standing.guild_id, replace(choice, silence=standing.silence), by=by)

    # -- whom it hears ---------------------------------------------------------------------------------------

    async def opt(self, guild_id: int, person_id: int, *, out: bool) -> None:
        """Hear a person there no more, or again; it holds at once. Raises `StoreError`."""
        standing = await self.standing(guild_id)
        opted_out = standing.opted_out | {person_id} if out else standing.opted_out - {person_id}
        standing.opted_out = frozenset(opted_out)
        log.info("hearing_opted", guild_id=guild_id, user_id=person_id, out=out)
        await self._opt_outs.put(guild_id, person_id, out=out)
