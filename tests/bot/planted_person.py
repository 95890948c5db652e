"""A person whose id, name and words are planted into everything that a session stores."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from sqlalchemy import insert

from bot.server_settings import ServerSettings
from bot.store.database import Database
from bot.store.search.vector_store import VectorStore
from bot.store.servers import SqlServerSettings
from bot.store.tables import person_facts
from compaction.model import Fact, FactKind, Note, NoteId, Seq, SessionId, TurnKind, TurnPart
from compaction.payload import PartKind, make_part
from compaction.summary.port import Fold, FoldRequest
from tests.bot.evening import GUILD, Evening

PERSON = "482915736640102939"
NAME = "Quillfeather"
# After the lines of the log are written, whose times are real.
LATER = 4_000_000_000.0
WORDS = (
    "I live in Zanzibarq with my aunt Petronella and her nine parrots.",
    "My boat is moored behind the old lighthouse at Wickhamq since last spring.",
    "The doctor says that I must not eat walnuts or Hazelq butter any more.",
    "In May I will marry the captain of the ferry to Ostendq.",
)


class RestatingSummariser:
    """A model that tells again, in the gist and the paragraph of every fold, all that it has ever read, and draws a
    fact from each turn.
    """

    name, model = "llm", "restating"

    async def fold(self, request: FoldRequest) -> Fold:
        """See `Summariser.fold`."""
        read = [f"{part.speaker} said: {part.text}" for turn in request.turns for part in turn.parts]
        told = " ".join(each for each in (request.previous or "", *read) if each)
        facts = tuple(
            Fact((turn.seq,), turn.text, FactKind.LASTING, 2, (), turn.parts[0].speaker, turn.started_at, "Bob")
            for turn in request.turns
            if turn.parts
        )
        return Fold(told[-2_000:], facts[:16], told[:1_200], "fold.v1")


def runs(text: str, length: int) -> Iterator[tuple[str, ...]]:
    """Yield every so many words in a row."""
    words = re.findall(r"[^\W_]+", text.casefold())
    for at in range(len(words) - length + 1):
        yield tuple(words[at : at + length])


async def says(evening: Evening, text: str, name: str = NAME) -> None:
    """Let the person say something."""
    evening.clock.advance(4.0)
    now = evening.clock.now()
    part = TurnPart(PERSON, name, text)
    await evening.timeline.append(TurnKind.SPEECH, (part,), started_at=now, ended_at=now + 2.0)


async def answers(evening: Evening, text: str, to: int | None = None) -> None:
    """Let the bot say something. `to`: the turn that it answers, if that is stored."""
    evening.clock.advance(4.0)
    now = evening.clock.now()
    part = TurnPart("assistant", "Roomtone", text)
    seq = None if to is None else Seq(to)
    await evening.timeline.append(
        TurnKind.ASSISTANT,
        (part,),
        started_at=now,
        ended_at=now + 2.0,
        answers=seq,
        told_to=(PERSON,),
        sources=(PERSON,),
    )


async def talk(evening: Evening, turns: int) -> None:
    """Let Bob and Cy talk; what is due is folded."""
    for _ in range(turns):
        number = evening.timeline.total_turns
        await evening.say(f"I put parcel {number} into shed {5000 + number}.", "Bob" if number % 2 else "Cy")
        evening.timeline.context(max_input_tokens=evening.max_input_tokens)
        await evening.timeline.settle()


async def fill(evening: Evening) -> None:
    """Put the person's id, names and words into everything that a session stores."""
    await says(evening, WORDS[0])
    await evening.say("Bot, is it far?", "Bob")
    await evening.say("It will rain. Will it rain at nine?", "Cy")
    await answers(evening, f"It is far. {WORDS[0]}", to=1)
    await says(evening, WORDS[1])
    await evening.say("Bot, what do you know of the harbour?", "Bob")
    await answers(evening, "A boat lies by the lighthouse of Wickhamq, people say.", to=5)
    await evening.say("Bot, will it rain?", "Cy")
    await answers(evening, "It will rain at nine.", to=7)
    both = (TurnPart("id-Bob", "Bob", "We leave at ten."), TurnPart(PERSON, NAME, WORDS[2]))
    at = evening.clock.now() + 4.0
    await evening.timeline.append(TurnKind.SPEECH, both, started_at=at, ended_at=at)
    await answers(evening, "As Will told us, walnuts are out.", to=9)
    await evening.timeline.add_note(Note(NoteId("n1"), at, NAME, WORDS[0], person_id=PERSON))
    await evening.timeline.add_note(Note(NoteId("n2"), at, "Bob", "A picture of a cat.", person_id="id-Bob"))
    await evening.timeline.retire_live_notes()
    await talk(evening, 10)
    await says(evening, WORDS[3])
    await talk(evening, 75)
    await evening.timeline.add_note(Note(NoteId("n3"), at, NAME, "A map of Ostendq.", person_id=PERSON))
    await evening.upkeep.run_once()
    await evening.upkeep_check()
    first, second, *_ = await evening.tier_store.tiers_of(evening.session_id)
    await evening.tier_store.archive(evening.session_id, [first.kept.segment.id], now=at)
    await evening.tier_store.archive(evening.session_id, [second.kept.segment.id], now=at)
    await evening.tier_store.prune({evening.session_id: [second.kept.segment.id]}, now=at)
    vectors = VectorStore(evening.database)
    while waiting := await vectors.unembedded(limit=50):
        await vectors.store("fake", {each: None if text is None else [1.0, 0.5] for each, text in waiting})
    servers = SqlServerSettings(evening.database, evening.clock)
    await servers.put(GUILD, ServerSettings(auto_join_with=(int(PERSON), 7)), by=int(PERSON))
    await says(evening, "Nobody has drawn facts from this.")
    await evening.facts.forget(PERSON, GUILD)
    # Afterwards, because this deletes facts and prompts as well.
    tool_output = f"found: {NAME} ({PERSON}): {WORDS[1]}"
    prompt = replace(evening.prompt(tool_output), people=(PERSON,))
    await evening.prompts.store([prompt], is_current=lambda _: True)
    await note_fact(evening.database, evening.session_id)


async def note_fact(database: Database, session_id: SessionId) -> None:
    """Store a fact about the person that has neither name nor words of theirs, as a model may word it."""
    values = {"id": f"{session_id}#fact", "session_id": session_id, "turn_seq": 0, "person_id": PERSON, "at": 0.0}
    async with database.writing() as connection:
        await connection.execute(
            insert(person_facts).values(values | {"name": "Q", "text": "Puts parcels into sheds."})
        )


def quotes(evening: Evening, session_id: SessionId, seq: int) -> None:
    """Let a prompt quote a turn of another session."""
    evening.upkeep.on_payload_sent([make_part("user", PartKind.RECALL, "…", refs=(f"turn:{session_id}#{seq}",))])
