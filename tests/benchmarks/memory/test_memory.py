"""What the memory benchmark generates, searches and counts."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import ANY

from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.memory.conversations.conversation import (
    ConversationLine,
    FactStatement,
    PlantedFact,
    RecordedConversation,
    ReferenceQuestion,
)
from benchmarks.memory.conversations.synthetic_evenings import TemplateSet, generate_evening
from benchmarks.memory.evidence import measure_evidence
from benchmarks.memory.roomtone_search import SESSION, RoomtoneSearch
from benchmarks.memory.search import quotes_in_prompts
from bot.clock import SystemClock
from bot.store.database import Database, open_database
from bot.store.tables import passages
from bot.store.turns import SqlTurnStore
from compaction.model import Seq, Turn, TurnKind, TurnPart
from tests.benchmarks.no_progress import NoProgress


def test_sets_of_templates_have_no_fact_in_common() -> None:
    """The held-out set shares no sentence, no key and no speaker with the set for tuning. A seed is one evening."""
    tuning, held_out = (generate_evening(1, part, lines=400) for part in TemplateSet)
    assert generate_evening(1, TemplateSet.TUNING, lines=400) == tuning
    assert not {line.text for line in held_out.lines} & {line.text for line in tuning.lines}
    assert not {fact.key for fact in held_out.facts} & {fact.key for fact in tuning.facts}
    assert not held_out.speakers & tuning.speakers - {"Roomtone"}


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(TemplateSet))
def test_every_statement_is_where_it_says(seed: int, templates: TemplateSet) -> None:
    """The line of each statement is by its speaker and has its value, and the first statement's line has the key."""
    made = generate_evening(seed, templates, lines=200)
    for fact in made.facts:
        for number, each in enumerate(fact.statements):
            line = made.lines[each.seq]
            assert line.speaker == each.speaker
            assert any(value.casefold() in line.text.casefold() for value in each.value)
            assert number > 0 or fact.key.casefold() in line.text.casefold()


async def test_a_quoted_answer_counts() -> None:
    """The answer counts if its line is quoted, and a question whose answer is in the window is not asked."""
    said = {3: "My locker code is 4411.", 9: "Correction: my locker code is 7702 now.", 75: "I brought soup."}
    lines = tuple(
        ConversationLine("Ada" if at in said else "Bob", said.get(at, f"Level {at}."), 6.0 * at) for at in range(80)
    )
    statements = (FactStatement(3, "Ada", ("4411",)), FactStatement(9, "Ada", ("7702",)))
    figures = await quotes_in_prompts(
        [
            RecordedConversation(
                "talk",
                "test",
                lines,
                (PlantedFact("locker code", statements, "What is Ada's locker code?"),),
                (ReferenceQuestion("Who keeps a zebra?", (20,)), ReferenceQuestion("What did Ada bring?", (75,))),
            )
        ],
        None,
        NoProgress(),
    )
    assert (figures["questions"], figures["answered"], figures["stale_alone"]) == (2, 0.5, 0.0)
    # Nothing is folded here, but the same person has told another code since.
    assert (figures["corrected"], figures["stale_first"]) == (1, 0.0)


async def test_evidence_beside_a_hit_is_shown_and_not_found() -> None:
    """A turn counts as found if it is a hit itself; of two turns of evidence, each is half of the recall."""
    said = {3: "The zebra is called Fips.", 4: "Such a stubborn animal.", 9: "Our zebra Fips likes apples."}
    lines = tuple(ConversationLine("Ada", said.get(at, f"Level {at}."), 6.0 * at) for at in range(80))
    questions = (
        ReferenceQuestion("What is the zebra called?", (3, 15)),
        ReferenceQuestion("What about the zebra?", (4,)),
        ReferenceQuestion("Which level is the zebra on?", (79,)),
    )
    figures = await measure_evidence(
        [RecordedConversation("talk", "test", lines, questions=questions)], None, NoProgress()
    )
    found = {"hit": 0.5, "recall": 0.25, "shown": 1.0, "cpu_ms": ANY}
    assert figures == {"test": {"conversations": 1, "questions": 2, "full text alone": found}}


async def test_rows_are_those_of_the_store_itself(tmp_path: Path) -> None:
    """Turns that are added in pieces give the same passages as storing them one by one."""
    lines = generate_evening(4, TemplateSet.TUNING, lines=20).lines
    async with open_database(tmp_path / "one.db", synchronous="normal") as database:
        store = SqlTurnStore(database, SystemClock())
        for seq, line in enumerate(lines):
            kind = TurnKind.ASSISTANT if line.by_bot else TurnKind.SPEECH
            part = TurnPart(line.speaker.casefold(), line.speaker, line.text)
            await store.append_turn(SESSION, Turn(Seq(seq), kind, line.at, line.at, (part,)))
        expected = await rows_of(database)
    async with open_database(tmp_path / "other.db", synchronous="normal") as database:
        search, done = RoomtoneSearch(database), 0
        for piece in (7, 1, 12):
            await search.add(lines[done : done + piece])
            done += piece
        assert await rows_of(database) == expected
    assert len(expected) == 20


async def rows_of(database: Database) -> list[tuple[object, ...]]:
    """Return all passages, in order of their turns."""
    async with database.reading() as connection:
        found = (await connection.execute(passages.select().order_by(passages.c.start_seq))).all()
    return [tuple(row) for row in found]
