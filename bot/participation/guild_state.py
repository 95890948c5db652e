"""How the bot takes part on each server: when it speaks, under which names, whom it hears, and its costs.

Opt-outs are read when they are first needed. What a server has chosen is asked of `ServerSettingsBook`. The process
has one `GuildStates`, because servers outlive rooms. A silence or an opt-out takes effect at once and is stored
afterwards. If the store fails, who chose gets `NotStoredError`: it holds as long as the process runs.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import structlog

from bot.errors import BotError
from bot.guild import Silence, VoiceMode
from bot.participation.costs import CostLedger, ceiling_of, cost_of
from bot.shards import ONLY_SHARD, Shards
from bot.texts.text import Text, sentence_of
from bot.tuning import UNTUNED, Tuning
from bot.words import Words
from compaction.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Collection

    from bot.clock import Clock
    from bot.llm.model_calls import ModelCall
    from bot.llm.settings import LlmSettings
    from bot.participation.participation import Participation
    from bot.participation.settings import ParticipationSettings
    from bot.participation.spending import Spending
    from bot.server_settings import ServerSettingsBook
    from bot.settings import RoomSettings
    from compaction.model import SessionId

log = structlog.get_logger()

MAY_SPEAK = Text("I can speak again.")
SILENCED_FOR_GOOD = Text(
    "A server manager has told me to be silent. Only a server manager can let me talk again, with /talk."
)
LISTENS_ONLY = Text(
    "In this session I only write down what is said. If I should talk with you, send me away with "
    "/leave, then call me with /join."
)


@dataclass(slots=True)
class SessionConsent:
    """What the people of one session were told, and what they chose. Another session begins with a new one.

    `session_id`: None before the server's first session. `agreed`: who agreed to be heard, where the bot asks; replace
    it and never change it, because other threads read it. `notice`: the digest of the newest notice (see
    `bot.posts.notice`). `notified`: who has had it.
    """

    session_id: str | None = None
    agreed: frozenset[int] = frozenset()
    notice: str = ""
    notified: frozenset[int] = frozenset()

    def notified_of(self, notice: str) -> frozenset[int]:
        """Return who has had this notice."""
        return self.notified if notice == self.notice else frozenset()

    def note_notified(self, notice: str, people: frozenset[int]) -> None:
        """Take note that people have had a notice."""
        self.notice, self.notified = notice, self.notified_of(notice) | people


@dataclass(slots=True)
class GuildState:
    """The participation of one server now. Replace `opted_out` and never change it, because other threads read it.

    `servers`: what each server has chosen; where this one has chosen nothing, `usual_mode` and `usual_names` apply.
    `refused`: whom the bot serves nowhere. `room`: the bot's room there, if it has one. `words`: those of its newest
    session. `ceiling_notice_at`: when the channel last got the
    notice that the ceiling is reached.
    """

    guild_id: int
    servers: ServerSettingsBook
    usual_mode: VoiceMode
    usual_names: tuple[str, ...]
    costs: CostLedger
    # Of all times here.
    clock: Clock
    # Has what models cost; None: nothing is known.
    llm: LlmSettings | None = None
    opted_out: frozenset[int] = frozenset()
    refused: frozenset[int] = frozenset()
    room: Participation | None = None
    words: Words = field(init=False)
    ceiling_notice_at: float | None = None
    # Whether the bot asks first, settled when a room begins, and what the people of the newest session have answered.
    asks: bool = False
    consent: SessionConsent = field(default_factory=SessionConsent)
    # When people last agreed to be heard or opted in again (monotonic seconds). For others it is as long ago as it may
    # be.
    agreed_at: dict[int, float] = field(default_factory=dict)
    # When a room of that session was last known to run (monotonic seconds).
    ran_until: float | None = None
    # The bot only writes down in this session: it says nothing, whoever asks.
    listens_only: bool = False

    def __post_init__(self) -> None:
        self.words = Words(self.excludes, monotonic=self.clock.monotonic)

    @property
    def is_used_up(self) -> bool:
        """See `Payer.is_used_up`."""
        return self.costs.is_over(self.clock.monotonic())

    def pay(self, call: ModelCall) -> None:
        """See `Payer.pay`."""
        price = None if self.llm is None else self.llm.price_of(call.model)
        self.costs.add(cost_of(call, price), now=self.clock.monotonic())

    @property
    def voice_mode(self) -> VoiceMode:
        return self.servers.of(self.guild_id).voice_mode or self.usual_mode

    @property
    def wake_names(self) -> tuple[str, ...]:
        return self.servers.of(self.guild_id).wake_names or self.usual_names

    @property
    def silence(self) -> Silence:
        return self.servers.of(self.guild_id).silence

    def excludes(self, person_id: int) -> bool:
        """Return whether a person may not be heard: they opted out, are not served, or were asked and have not agreed.
        Thread-safe.
        """
        is_out = person_id in self.opted_out or person_id in self.refused
        return is_out or (self.asks and person_id not in self.consent.agreed)

    def heard_since(self, person_id: int) -> float | None:
        """Return since when a person may be heard, in monotonic seconds; None: they may not. Thread-safe."""
        return None if self.excludes(person_id) else self.agreed_at.get(person_id, float("-inf"))

    def opted_out_ids(self) -> frozenset[str]:
        """Return the ids of the people who opted out, as turns have them."""
        return frozenset(map(str, self.opted_out))

    def begin_session(self, session_id: str, *, listens_only: bool = False) -> None:
        """Ask everybody anew in another session. A session that goes on after a crash keeps its answers."""
        self.listens_only = listens_only
        if session_id != self.consent.session_id:
            self.consent = SessionConsent(session_id)
            self.words = Words(self.excludes, monotonic=self.clock.monotonic)

    def running_session(self, now: float, *, within_s: float) -> str | None:
        """Return the session whose room ran until now, or within these seconds: the next room goes on with it, however
        long nobody has said anything.
        """
        ran = self.ran_until is not None and now - self.ran_until <= within_s
        return self.consent.session_id if ran else None


class OptOuts(Protocol):
    """The store of the people who opted out of being heard; `bot.store.servers` implements it. Raises `StoreError`."""

    async def of(self, guild_id: int) -> frozenset[int]:
        """Return the people who opted out on that guild."""

    async def put(self, guild_id: int, person_id: int, *, out: bool) -> None:
        """Store whether a person has opted out there."""


class NotNowError(BotError):
    """What somebody chose cannot be done as things are. The message says why, or what to do first."""


class NotStoredError(StoreError):
    """What somebody chose is in effect and could not be stored. The message says why it could not."""


class GuildStates:
    """The participation of every server. Not thread-safe.

    `servers`: what each has chosen. `spending`: of all servers; None: costs are counted from now on, and not kept.
    `refused`: whom the bot serves nowhere. `wake_names`: the names in the settings. `room`: whether the bot hears only
    people who agreed; a server may be stricter, never laxer. `llm`: has what models cost, if that is known.
    `shards`: those of this process; what another process serves changes there.
    """

    def __init__(
        self,
        servers: ServerSettingsBook,
        opt_outs: OptOuts,
        settings: ParticipationSettings,
        *,
        wake_names: tuple[str, ...],
        clock: Clock,
        spending: Spending | None = None,
        refused: frozenset[int] = frozenset(),
        room: RoomSettings | None = None,
        shards: Shards = ONLY_SHARD,
        llm: LlmSettings | None = None,
        tuning: Tuning = UNTUNED,
    ) -> None:
        self.tuning = tuning
        self._room = room
        self._shards = shards
        self._servers = servers
        self._opt_outs = opt_outs
        self._clock = clock
        self.settings = settings
        self._spending = spending
        self._llm = llm
        self._refused = refused
        self._wake_names = wake_names
        self._guilds: dict[int, GuildState] = {}
        # By server and person: whether somebody has opted out, as long as that is not stored.
        self._unstored: defaultdict[int, dict[int, bool]] = defaultdict(dict)
        # By server: held while its opt-outs are read or stored.
        self._opting: defaultdict[int, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def of_guild(self, guild_id: int) -> GuildState:
        """Return a server's participation. Raises `StoreError`: without the opt-outs the bot may hear nobody."""
        if (known := self._guilds.get(guild_id)) is not None:
            return known
        async with self._opting[guild_id]:
            return self._guilds.get(guild_id) or await self._read(guild_id)

    async def _read(self, guild_id: int) -> GuildState:
        spending, ledger = self._spending, CostLedger(ceiling_of(self.settings, guild_id))
        if spending is not None:
            ledger = await spending.open_ledger(guild_id)
        opted_out = await self._opt_outs.of(guild_id)
        # Somebody may have opted out before the server was first read.
        unstored = self._unstored[guild_id]
        opted_out = opted_out.union(unstored).difference(person for person, out in unstored.items() if not out)
        guild = self._guilds[guild_id] = GuildState(
            guild_id,
            self._servers,
            VoiceMode(self.settings.voice_mode),
            self._wake_names,
            ledger,
            self._clock,
            self._llm,
            opted_out=opted_out,
            refused=self._refused,
            asks=self._asks(guild_id),
        )
        return guild

    async def begin_session(self, guild_id: int, session_id: str, *, listens_only: bool = False) -> GuildState:
        """Return a server's participation for a session that begins or goes on in a new room. Raises `StoreError`.

        `listens_only`: the bot says nothing in it. Only now what the server has chosen about consent takes effect:
        people who are heard already were not asked.
        """
        guild = await self.of_guild(guild_id)
        guild.asks = self._asks(guild_id)
        guild.begin_session(session_id, listens_only=listens_only)
        return guild

    def _asks(self, guild_id: int) -> bool:
        """Return whether the bot hears only people of a server who agreed."""
        return self._servers.of(guild_id).asks or (self._room is not None and self._room.asks(guild_id))

    def names_of(self, guild_id: int) -> tuple[str, ...]:
        """Return what the bot is called there."""
        return self._servers.of(guild_id).wake_names or self._wake_names

    # -- silence ---------------------------------------------------------------------------------------------

    async def silence_for_now(self, guild_id: int, *, by: int, minutes: float | None = None) -> None:
        """Silence the bot there: for `minutes`, also in another session, or until its session ends. Raises
        `NotNowError`, `StoreError`.
        """
        guild = await self.of_guild(guild_id)
        if guild.room is None:
            raise NotNowError(Text("I am not in a voice channel here."))
        silence = (
            guild.silence.silence_session(guild.room.session_id)
            if minutes is None
            else guild.silence.silence_until(self._clock.now() + 60 * minutes)
        )
        self.apply_silence(guild, silence, by=by, how="command")
        await self.store_silence(guild, by=by)

    async def silence_always(self, guild_id: int, *, by: int) -> None:
        """Silence the bot there until a manager lets it talk. Raises `StoreError`."""
        guild = await self.of_guild(guild_id)
        self.apply_silence(guild, guild.silence.silence_always(), by=by, how="manager")
        await self.store_silence(guild, by=by)

    async def lift_silence(self, guild_id: int, *, by: int, manager: bool) -> bool:
        """Lift the silence there; return whether the bot may speak now. Raises `NotNowError`, `StoreError`."""
        guild = await self.of_guild(guild_id)
        if guild.listens_only and guild.room is not None:
            raise NotNowError(LISTENS_ONLY)
        self._servers.hold_silence(guild_id, guild.silence.lift(by_manager=manager))
        log.info("silence_lifted", guild_id=guild_id, user_id=by, still_silent=guild.silence.always)
        await self.store_silence(guild, by=by)
        return not guild.silence.always

    def apply_silence(self, guild: GuildState, silence: Silence, *, by: int, how: str) -> None:
        """Silence the bot on a server at once. Call `store_silence` afterwards. `how`: in a word, for the log."""
        self._servers.hold_silence(guild.guild_id, silence)
        if guild.room is not None:
            guild.room.stop_speaking()
        log.info("silenced", guild_id=guild.guild_id, user_id=by, how=how, always=silence.always)

    async def store_silence(self, guild: GuildState, *, by: int) -> None:
        """Store the silence that holds on a server. Raises `NotStoredError`."""
        try:
            # It is part of what holds there.
            await self._servers.change(guild.guild_id, lambda now: now, by=by)
        except StoreError as error:
            raise NotStoredError(sentence_of(error)) from error

    # -- consent and opt-outs ---------------------------------------------------------------------------------------

    def opted_out_of(self, guild_id: int | None) -> frozenset[str]:
        """Return the ids of the people who opted out there, as turns have them. Empty before a room was there."""
        guild = None if guild_id is None else self._guilds.get(guild_id)
        return frozenset() if guild is None else guild.opted_out_ids()

    async def withheld_on(self, guild_id: int) -> frozenset[str]:
        """Return the ids of the people who opted out there, also before a room was there. Raises `StoreError`."""
        if not self._shards.serves(guild_id):
            return frozenset(map(str, await self._opt_outs.of(guild_id)))
        return (await self.of_guild(guild_id)).opted_out_ids()

    def take_back(self, people: Collection[str] = (), *, sessions: Collection[SessionId] = ()) -> None:
        """Take back what these people (ids) have said until now, on all servers, and turns of these sessions."""
        for guild in list(self._guilds.values()):
            turns = guild.consent.session_id in sessions
            if people or turns:
                guild.words.take_back(people, turns=turns)

    async def set_agreed(self, guild_id: int, person_id: int, *, agrees: bool) -> None:
        """Hear a person on that guild until the session ends (`agrees`), or no longer. Takes effect at once.

        Raises `NotNowError` if they agree but have opted out, and `StoreError`.
        """
        guild = await self.of_guild(guild_id)
        withdraws = not agrees and guild.asks and not guild.excludes(person_id)
        if agrees and person_id in guild.opted_out:
            raise NotNowError(
                Text(
                    "You used /opt-out, so I do not hear you on this server. First use /opt-in, then "
                    "press the button again."
                )
            )
        agreed = guild.consent.agreed
        if agrees and person_id not in agreed:
            # First: from the next line on they are heard.
            guild.agreed_at[person_id] = self._clock.monotonic()
        guild.consent.agreed = agreed | {person_id} if agrees else agreed - {person_id}
        if withdraws:
            guild.words.take_back({str(person_id)}, turns=True)
        log.info("consent_changed", guild_id=guild_id, user_id=person_id, agrees=agrees)

    def must_agree(self, guild_id: int, person_id: int) -> bool:
        """Return whether the bot hears a person on that guild only once they have agreed, and they have not."""
        guild = self._guilds.get(guild_id)
        if guild is None or guild.room is None:
            return self._asks(guild_id)
        return guild.asks and person_id not in guild.consent.agreed

    async def set_opt_out(self, guild_id: int, person_id: int, *, out: bool) -> None:
        """Opt a person out of being heard on that guild (`out`), or in again. Takes effect at once. Raises
        `NotStoredError`: it is in effect as long as the process runs.
        """
        unstored = self._unstored[guild_id]
        unstored[person_id] = out
        if (guild := self._guilds.get(guild_id)) is not None:
            self._apply_opt_out(guild, person_id, out=out)
        async with self._opting[guild_id]:
            # The newest choice is stored last, however long an earlier one took.
            newest = unstored.get(person_id)
            if newest is None:
                return
            try:
                await self._opt_outs.put(guild_id, person_id, out=newest)
            except StoreError as error:
                raise NotStoredError(sentence_of(error)) from error
            if unstored[person_id] == newest:
                del unstored[person_id]

    def _apply_opt_out(self, guild: GuildState, person_id: int, *, out: bool) -> None:
        if out == (person_id in guild.opted_out):
            # Opting out again would only interrupt the bot, and opting in takes no agreement back.
            return
        if not out:
            # First: from the next line on they are heard.
            guild.agreed_at[person_id] = self._clock.monotonic()
        guild.opted_out = guild.opted_out | {person_id} if out else guild.opted_out - {person_id}
        guild.consent.agreed -= {person_id}
        if out:
            guild.words.take_back({str(person_id)}, turns=True)
        log.info("opt_out_changed", guild_id=guild.guild_id, user_id=person_id, out=out)
