"""Provides `Evening`: a session with memory and memory upkeep on a real database, but without sound. Tests decide what
people say.
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from datetime import tzinfo
from functools import partial
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Self

from pydantic import SecretStr

from bot.brain.context import ModelContext, build_context_messages
from bot.brain.tools.toolbox import Toolbox
from bot.memory.access_log import AccessLog
from bot.memory.admin import MemoryAdmin
from bot.memory.people import PeopleBook
from bot.memory.upkeep import MemoryUpkeep
from bot.store.database import Database, open_database
from bot.store.people import PeopleStore
from bot.store.prompts import PromptStore, SentPrompt
from bot.store.quoted_turns import QuoteStore
from bot.store.session_forgetting import ForgetReport
from bot.store.sessions import Sessions
from bot.store.speech_forgetting import SpeechForgetter
from bot.store.tiers import TierStore
from bot.store.turns import SqlTurnStore
from bot.words import Words
from compaction.memory.people import Audience
from compaction.memory.tiers import TierChanges
from compaction.model import Mode, SessionId, Turn, TurnKind, TurnPart
from compaction.payload import PartKind, make_part
from compaction.session import SessionTimeline
from compaction.settings import PeopleSettings
from compaction.summary.extractive import ExtractiveSummariser
from compaction.summary.port import Summariser
from tests.bot.empty_database import put_empty_database
from tests.fakes.clock import FakeClock

GUILD, CHANNEL = 77, 701
# People who could have heard the evening, of whom nobody asks.
HERE = Audience(GUILD, frozenset({CHANNEL}))
PEOPLE = ("Ada", "Bob", "Cy")


class Evening:
    """One session of a guild. `place`: where its database is. `max_input_tokens`: the largest allowed prompt; a small
    value fills up after few turns.
    """

    def __init__(
        self,
        place: Path | SecretStr,
        *,
        name: str = "evening",
        clock: FakeClock | None = None,
        people: PeopleSettings | None = None,
        max_input_tokens: int = 28_672,
        summariser: Summariser | None = None,
        channel: int = CHANNEL,
        guild: int = GUILD,
        searchable: bool = False,
    ) -> None:
        self._searchable = searchable
        self._place = place
        self._guild = guild
        self._channel = channel
        self.session_id = SessionId(name)
        self.clock = FakeClock() if clock is None else clock
        self._summariser = ExtractiveSummariser() if summariser is None else summariser
        self._people_settings = PeopleSettings() if people is None else people
        self.max_input_tokens = max_input_tokens
        self._stack = AsyncExitStack()
        self.database: Database
        self.store: SqlTurnStore
        self.tier_store: TierStore
        self.facts: PeopleStore
        self.people: PeopleBook
        self.prompts: PromptStore
        self.accesses: AccessLog
        self.timeline: SessionTimeline
        self.upkeep: MemoryUpkeep

    async def __aenter__(self) -> Self:
        if isinstance(self._place, Path):
            put_empty_database(self._place)
        self.database = await self._stack.enter_async_context(open_database(self._place, synchronous="normal"))
        await Sessions(self.database, self.clock).open(
            guild_id=self._guild, channel_id=self._channel, resume_within_s=1e9, session_id=self.session_id
        )
        self.store = SqlTurnStore(self.database, self.clock)
        self.tier_store = TierStore(self.database)
        self.facts = PeopleStore(self.database)
        self.people = PeopleBook(self.facts, self._people_settings)
        self.prompts = PromptStore(self.database)
        self.accesses = AccessLog(self.tier_store, self.clock, QuoteStore(self.database))
        self.timeline = await self._stack.enter_async_context(
            SessionTimeline.open(
                self.session_id,
                store=self.store,
                summariser=self._summariser,
                mode=Mode.SUMMARY,
                clock=self.clock,
                guild_id=str(self._guild),
                rng=Random(7),
                searchable=self._searchable,
            )
        )
        self.words = Words(monotonic=self.clock.monotonic)
        self.timeline.compactor.on_change = partial(self.words.take_back, turns=True)
        self.upkeep = self.new_upkeep()
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    def new_upkeep(self) -> MemoryUpkeep:
        """Return a new `MemoryUpkeep` on the same data, as after a restart of the bot."""
        return MemoryUpkeep(
            self.session_id,
            self._guild,
            timeline=self.timeline,
            words=self.words,
            turns=self.store,
            tiers=self.tier_store,
            people=self.people.for_session(self.session_id, self.facts),
            prompts=self.prompts,
            accesses=self.accesses,
            clock=self.clock,
            max_input_tokens=self.max_input_tokens,
        )

    async def upkeep_check(self) -> TierChanges:
        """Compress every cold segment at once, as an operator does by hand."""
        return await MemoryAdmin(self.database, self.clock).check(
            self.session_id, max_input_tokens=self.max_input_tokens, regardless=True
        )

    async def say(self, text: str, speaker: str = "Ada", *, kind: TurnKind = TurnKind.SPEECH) -> Turn:
        """Append a turn in which `speaker` says `text`, four seconds after the last turn."""
        self.clock.advance(4.0)
        now = self.clock.now()
        part = TurnPart(f"id-{speaker}", speaker, text)
        return await self.timeline.append(kind, (part,), started_at=now, ended_at=now + 2.0)

    async def talk(self, turns: int) -> None:
        """Append that many different turns, and let the session compact whatever is due."""
        for _ in range(turns):
            number = self.timeline.total_turns
            await self.say(f"I put parcel {number} into shed {5000 + number}.", PEOPLE[number % 3])
            self.timeline.context(max_input_tokens=self.max_input_tokens)
            await self.timeline.settle()

    async def talk_of_bob(self, turns: int) -> None:
        """As `talk`, but only Bob speaks."""
        for _ in range(turns):
            number = self.timeline.total_turns
            await self.say(f"I put parcel {number} into shed {5000 + number}.", "Bob")
            self.timeline.context(max_input_tokens=self.max_input_tokens)
            await self.timeline.settle()

    def prompt(self, text: str) -> SentPrompt:
        """Return a prompt of the session that has this text."""
        part = make_part("tool", PartKind.TOOL, text)
        now = self.clock.now()
        return SentPrompt.of(
            [part], self.session_id, answer_to=0, at=now, mode=Mode.SUMMARY, cursor=0, summary_revision=0
        )

    async def prompts_kept(self) -> list[str]:
        """Return the texts of the prompts that are stored for turn 0."""
        sent = await self.prompts.sent_for(self.session_id, 0)
        return [part.content for each in sent for part in each.parts]

    def asks(
        self, turn: Turn, *, system: tuple[str, ...] = ("You take part.",), zone: tzinfo, **others: object
    ) -> ModelContext:
        """Build the messages that a model would get to answer `turn`."""
        return build_context_messages(
            self.timeline,
            turn,
            system=system,
            max_input_tokens=self.max_input_tokens,
            now=self.clock.now(),
            zone=zone,
            **({"toolbox": Toolbox()} | others),  # type: ignore[arg-type]
        )


async def forget(
    database: Database,
    clock: FakeClock,
    name_or_id: str,
    *,
    session_id: SessionId | None = None,
    seq: int | None = None,
) -> ForgetReport:
    """Forget a person whom the database knows by this name or id. Returns what has gone."""
    forgetter = SpeechForgetter(database, clock)
    (person,) = await forgetter.find(name_or_id)
    return await forgetter.forget(person, session_id=session_id, seq=seq)
