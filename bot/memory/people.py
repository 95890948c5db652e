"""What is known of the people in the rooms, at hand for the next reply: drawn, told, shown to them, deleted.

One for the process. What a prompt says comes out of memory, so that no reply waits for the store; who comes in is
read beforehand (`prime`). Facts of one server never reach another.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import structlog

from compaction.language.sentence_cache import clear_sentence_caches
from compaction.memory.people import extract_person_facts, participants_part

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bot.store.people import PeopleStore
    from compaction.memory.people import PersonFact
    from compaction.model import SessionId, Turn
    from compaction.payload import PayloadPart
    from compaction.settings import PeopleSettings

log = structlog.get_logger()

# Most things the model is told about one person.
FACTS_EACH = 6
# Tokens that the section about the people present may take of a prompt, about 900 characters.
SECTION_TOKENS = 300


class PeopleBook:
    """Facts about people, by guild and person. Not thread-safe."""

    def __init__(self, store: PeopleStore, settings: PeopleSettings) -> None:
        self._store = store
        self._settings = settings
        self._known: dict[tuple[int | None, str], tuple[PersonFact, ...]] = {}

    @property
    def enabled(self) -> bool:
        """Return whether anything is drawn and told at all; showing and deleting is always there."""
        return self._settings.enabled

    async def prime(self, guild_id: int | None, people: Iterable[str]) -> None:
        """Read what is known of these people now. Raises `StoreError`."""
        wanted = sorted(set(people))
        if not wanted or not self.enabled:
            return
        found: defaultdict[str, list[PersonFact]] = defaultdict(list)
        for fact in await self._store.known(wanted, guild_id):
            found[fact.person_id].append(fact)
        self._known.update({(guild_id, person_id): tuple(found[person_id]) for person_id in wanted})

    def section(self, guild_id: int | None, present: Sequence[tuple[str, str]]) -> tuple[PayloadPart, ...]:
        """Return the part of a prompt about the people present, (id, display name); none where nothing is known."""
        if not self.enabled:
            return ()
        facts = [fact for person_id, _ in present for fact in self._known.get((guild_id, person_id), ())]
        made = participants_part(present, facts, max_tokens=SECTION_TOKENS, most_each=FACTS_EACH)
        return () if made is None else (made,)

    def introductions(self, guild_id: int | None, present: Sequence[tuple[str, str]]) -> list[str]:
        """Return a line on each person present, (id, display name): the name, and what they have said of themselves."""
        lines: list[str] = []
        for person_id, name in present:
            facts = self._known.get((guild_id, person_id), ()) if self.enabled else ()
            told = sorted(facts, key=lambda fact: (-fact.weight, -fact.at))[:FACTS_EACH]
            lines.append(f"{name}, who has said: {' '.join(fact.text for fact in told)}" if told else name)
        return lines

    async def drawn_through(self, session_id: SessionId) -> int:
        """Return up to which turn facts have been drawn from a session. Raises `StoreError`."""
        return await self._store.drawn_through(session_id)

    async def draw(self, session_id: SessionId, guild_id: int | None, turns: Sequence[Turn], *, through: int) -> None:
        """Draw what people said of themselves in these turns of a folded batch. Raises `StoreError`."""
        found = extract_person_facts(turns, session_id=session_id)
        added = await self._store.keep(session_id, found, through=through)
        if added or found.retractions:
            await self.prime(guild_id, found.people)
        log.info(
            "person_facts_drawn",
            session_id=session_id,
            through=through,
            count=len(added),
            people=len({fact.person_id for fact in added}),
        )

    async def kept(self, guild_id: int | None, person_id: str) -> tuple[PersonFact, ...]:
        """Return everything that is kept about a person in a guild, history included. Raises `StoreError`."""
        return await self._store.known([person_id], guild_id, history=True)

    async def forget(self, guild_id: int | None, person_id: str) -> int:
        """Delete everything that is kept about a person in a guild; return how much. Raises `StoreError`."""
        count = await self._store.forget(person_id, guild_id)
        self._known.pop((guild_id, person_id), None)
        clear_sentence_caches()
        log.info("person_facts_forgotten", guild_id=guild_id, person_id=person_id, count=count)
        return count
