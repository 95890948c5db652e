"""A model that only repeats turns is told from one that writes facts, and code chooses the facts of such a batch."""

from __future__ import annotations

import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.model import FactKind, Seq
from compaction.summary.answer import ModelFact
from compaction.summary.copied_facts import CopiedFacts, is_copied
from compaction.summary.extractive import ExtractiveSummariser
from compaction.summary.llm import LlmSummariser
from compaction.summary.port import FoldRequest
from tests.compaction.summary.test_paragraph_writer import Says
from tests.compaction.turn_store_contract import turn

TURNS = (
    turn(10, "Right. Cabin first, or game first?"),
    turn(11, "My sister Olga brings the stove, she's got two.", speaker="Bob"),
    turn(12, "I don't eat anything with nuts, remember?", speaker="Cy"),
    turn(13, "Ich esse nichts mit Nüssen.", speaker="Dora"),
    turn(14, "周五我去接你。"),
)


@pytest.mark.parametrize(
    ("text", "copied"),
    [
        ("Right. Cabin first, or game first", True),
        ("right, cabin first or game first?", True),
        ("Cabin first", True),
        ("Bob: My sister Olga brings the stove", True),
        ("she's got two", True),
        ("Ich esse nichts mit Nüssen.", True),
        ("Cy", False),
        ("", False),
        ("Bob's sister Olga brings the stove.", False),
        ("Cy don't eat anything with nuts", False),
        ("Cy eats nothing with nuts.", False),
        ("Cy doesn't eat anything with nuts.", False),
        ("Dora isst nichts mit Nüssen.", False),
        ("Ada asks whether the cabin or the game comes first.", False),
        ("Cabin or game", False),
    ],
)
def test_a_copy_is_a_turns_own_words(text: str, copied: bool) -> None:
    """Signs and capitals don't count, nor the speaker's name before the words; one word more is a written fact."""
    assert is_copied(text, TURNS) is copied


def facts(*texts: str) -> list[ModelFact]:
    return [ModelFact((10,), FactKind.OTHER, text) for text in texts]


COPIED = facts("Cabin first")
QUOTES = facts("Cabin first", "she's got two")
WRITTEN = facts("Bob's sister Olga brings the stove.", "Cabin first")


@pytest.mark.parametrize(
    ("answers", "worthless"),
    [
        ([COPIED], [False]),
        ([COPIED, COPIED, COPIED], [False, True, True]),
        ([COPIED, WRITTEN, COPIED], [False, False, True]),
        ([COPIED, [], WRITTEN, COPIED], [False, False, False, True]),
        ([COPIED, WRITTEN, WRITTEN, WRITTEN, COPIED], [False] * 5),
        ([WRITTEN, WRITTEN, COPIED], [False] * 3),
        ([[], [], []], [False] * 3),
        ([QUOTES, QUOTES, COPIED], [False] * 3),
        ([COPIED, QUOTES, COPIED], [False, False, True]),
    ],
)
def test_one_copied_answer_is_chance_and_two_of_four_are_a_habit(
    answers: list[list[ModelFact]], worthless: list[bool]
) -> None:
    """An answer with a written fact is always used, and one with several quotes."""
    watch = CopiedFacts()
    assert [watch.note(each, TURNS) for each in answers] == worthless


@given(st.lists(st.sampled_from(["copied", "written", "none"]), max_size=20))
def test_written_answers_are_never_refused(kinds: list[str]) -> None:
    """Whatever came before, only an answer of nothing but copies is."""
    watch = CopiedFacts()
    answers = {"copied": COPIED, "written": WRITTEN, "none": []}
    for kind in kinds:
        assert not watch.note(answers[kind], TURNS) or kind == "copied"


def test_code_chooses_the_facts_of_a_model_that_only_copies() -> None:
    """The fold is no failure: it has what code makes of the batch, tells why, and counts the model's tokens."""
    answer = json.dumps(
        {
            "gist": "Cabin first.",
            "facts": [{"turns": [10], "kind": "other", "text": "Cabin first", "importance": 2}],
            "paragraph": "Right. Cabin first.",
        }
    )
    request = FoldRequest(Seq(10), TURNS, (), "", roster=frozenset({"Ada", "Bob", "Cy", "Dora"}))

    async def two_folds() -> None:
        summariser = LlmSummariser(Says(answer, answer), max_output_tokens=700)
        first = await summariser.fold(request)
        assert [fact.text for fact in first.facts] == ["Cabin first."]
        second = await summariser.fold(request)
        by_code = await ExtractiveSummariser().fold(request)
        assert (second.facts, second.gist) == (by_code.facts, by_code.gist)
        assert any("nuts" in fact.text for fact in second.facts)
        assert (first.made_by, second.made_by) == ("", "extractive")
        assert (second.paragraph, second.paragraph_problem) == ("", "The model repeats turns instead of writing facts.")
        assert (second.prompt_tokens, second.completion_tokens) == (300, 40)

    asyncio.run(two_folds())
