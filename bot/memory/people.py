"""Facts about people: extracted from turns, given to prompts, shown to the person, and deleted.

One instance for the process. Prompts read facts from memory, so no reply waits for the store; `prime` loads a person's
facts when they join. Facts of one guild are never used in another; within one, the `Audience`
decides which may be told.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import structlog

from compaction.log_events import MemoryEvent
from compaction.memory.people import Audience, PersonFact, extract_person_facts, participants_part
from compaction.sentence_cache import clear_sentence_caches

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from bot.store.people import ForgottenFacts, PeopleStore
    from compaction.model import Fact, SessionId, Turn
    from compaction.payload import PayloadPart
    from compaction.settings import PeopleSettings
    from compaction.summary.port import KnownFact

log = structlog.get_logger()

# Most facts about one person in a prompt.
FACTS_EACH = 6
# Tokens that the section about the people present may take of a prompt, about 900 characters.
SECTION_TOKENS = 300


class PeopleBook:
    """Facts about people, by guild and person. `store`: where they are kept. Not thread-safe."""

    def __init__(self, store: PeopleStore, settings: PeopleSettings, *, session_id: SessionId | None = None) -> None:
        self.store = store
        self._settings = settings
        self._session_id = session_id
        self._cache: dict[tuple[int | None, str], tuple[PersonFact, ...]] = {}

    def for_session(self, session_id: SessionId, store: PeopleStore) -> PeopleBook:
        """Return this book for a session: it stores facts with `store`, and its prompts are told nothing that was said
        in the session, since the summary and the turns there say it. Both books have the same facts in memory.
        """
        other = PeopleBook(store, self._settings, session_id=session_id)
        other._cache = self._cache
        return other

    @property
    def enabled(self) -> bool:
        """Whether facts are extracted and used in prompts. Showing and deleting them always works."""
        return self._settings.enabled

    async def prime(self, guild_id: int | None, people: Iterable[str]) -> None:
        """Load the facts about these people; without it prompts are told none. Raises `StoreError`."""
        wanted = sorted(set(people))
        if not wanted or not self.enabled:
            return
        found: defaultdict[str, list[PersonFact]] = defaultdict(list)
        for fact in await self.store.facts_about(wanted, guild_id):
            found[fact.person_id].append(fact)
        self._cache.update({(guild_id, person_id): tuple(found[person_id]) for person_id in wanted})

    async def reload(self) -> None:
        """Read all facts in memory again, after some were deleted elsewhere. Raises `StoreError`."""
        for guild_id in {guild_id for guild_id, _ in self._cache}:
            await self.prime(guild_id, [person_id for of_guild, person_id in self._cache if of_guild == guild_id])

    def section(self, audience: Audience, present: Sequence[tuple[str, str]]) -> tuple[PayloadPart, ...]:
        """Return the prompt part about the people present, (id, display name); empty if nothing may be told."""
        facts = [fact for person_id, _ in present for fact in self._tellable(audience, person_id)]
        made = participants_part(present, facts, max_tokens=SECTION_TOKENS, most_each=FACTS_EACH)
        return () if made is None else (made,)

    def introductions(self, audience: Audience, present: Sequence[tuple[str, str]]) -> list[str]:
        """Return one line for each person present, (id, display name): the name and the facts that may be told."""
        lines: list[str] = []
        for person_id, name in present:
            facts = self._tellable(audience, person_id)
            chosen = sorted(facts, key=lambda fact: (-fact.importance, -fact.at))[:FACTS_EACH]
            lines.append(f"{name}, who has said: {' '.join(fact.text for fact in chosen)}" if chosen else name)
        return lines

    def _tellable(self, audience: Audience, person_id: str) -> tuple[PersonFact, ...]:
        known = self._cache.get((audience.guild_id, person_id), ())
        return tuple(fact for fact in known if fact.session_id != self._session_id and audience.may_hear(fact))

    async def extract(
        self,
        session_id: SessionId,
        guild_id: int | None,
        facts: Sequence[KnownFact],
        turns: Sequence[Turn],
        *,
        through: int,
        is_current: Callable[[int], bool],
        superseded: Mapping[str, Fact],
    ) -> bool:
        """Store what the facts of these turns say about people. Raises `StoreError`.

        `is_current`: as in `PeopleStore.store_facts`; `superseded`: as in `extract_person_facts`. Returns
        False if nothing was stored because of the first.
        """
        found = extract_person_facts(facts, turns, session_id=session_id, superseded=superseded)
        added = await self.store.store_facts(session_id, found, through=through, is_current=is_current)
        if added is None:
            return False
        if added or found.ended:
            await self.prime(guild_id, found.people)
        log.info(
            MemoryEvent.FACTS_EXTRACTED,
            session_id=session_id,
            through=through,
            count=len(added),
            people=len({fact.person_id for fact in added}),
        )
        return True

    async def facts_about(self, guild_id: int | None, person_id: str) -> tuple[PersonFact, ...]:
        """Return all stored facts about a person in a guild, history included. Raises `StoreError`."""
        return await self.store.facts_about([person_id], guild_id, history=True)

    async def forget(self, guild_id: int | None, person_id: str) -> ForgottenFacts:
        """Delete all facts about a person in a guild. Raises `StoreError`."""
        done = await self.store.forget(person_id, guild_id)
        self._cache.pop((guild_id, person_id), None)
        clear_sentence_caches()
        # Without the person's id, which would bring it back into the log.
        log.info(MemoryEvent.FACTS_FORGOTTEN, guild_id=guild_id, count=done.count)
        return done
