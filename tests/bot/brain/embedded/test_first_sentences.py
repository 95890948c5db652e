"""What people mean by the first sentences to a bot, with the real embedder."""

from __future__ import annotations

import asyncio
import tomllib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from bot.brain.embedded.chat import READ_AGAIN_S, FirstSentences
from compaction.errors import EmbeddingError
from tests.fakes.clock import FakeClock

TABLE = tomllib.loads((Path(__file__).parent / "first_sentences.toml").read_text("utf-8"))
TRUST = tomllib.loads((Path(__file__).parent / "trust_sentences.toml").read_text("utf-8"))
pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.models]
NAMES = ("Roomtone", "Room tone")


ABOUT_THE_TALK = ("who_is_here", "how_long")


@pytest.mark.parametrize(("part", "about_the_talk", "others"), [("fit", 11, 22), ("apart", 6, 16)])
async def test_first_sentences_are_understood_and_questions_left_to_memory(
    sentences: FirstSentences, part: str, about_the_talk: int, others: int
) -> None:
    """Of 25 first sentences most are understood, in other words than those of the examples, and of 12 that ask who is
    here and how long people have talked at least half. None is taken for another, and no question about what was said
    is taken for one.
    """
    understood: Counter[bool] = Counter()
    for wanted, said in TABLE[part].items():
        for sentence in said:
            found = await sentences.meaning_of(sentence, names=NAMES, people=())
            # 'Hello? Anybody there?': a greeting tells as well that the bot hears.
            may_be = {wanted, "greeting"} if wanted == "hears" else {wanted}
            assert found is None or found in may_be, sentence
            understood[wanted in ABOUT_THE_TALK] += found in may_be
    assert understood[True] >= about_the_talk
    assert understood[False] >= others


@pytest.mark.parametrize(("part", "least", "most_mistaken"), [("fit", 19, 0), ("apart", 11, 2)])
async def test_what_people_ask_about_trust_is_understood(
    sentences: FirstSentences, part: str, least: int, most_mistaken: int
) -> None:
    """Each meaning has one example in a language, so of thirty sentences most are like none. That is seen, and few are
    taken for another.
    """
    found = [
        (sentence, wanted, await sentences.meaning_of(sentence, names=NAMES, people=()))
        for wanted, said in TRUST[part].items()
        for sentence in said
    ]
    assert len([each for each in found if each[2] not in {None, each[1]}]) <= most_mistaken
    assert sum(meaning == wanted for _, wanted, meaning in found) >= least


@pytest.mark.parametrize(
    ("said", "meaning"),
    [
        ("Hello Roomtone, can you hear me?", "hears"),
        ("Roomtone, what did we talk about?", "recap"),
        ("Roomtone, what did Ben say?", "said_by"),
        ("Are you recording this, Roomtone?", "recording"),
        ("Roomtone, what time is it?", "time"),
        ("Roomtone, please leave.", "leave"),
        ("What can you do, Roomtone?", "help"),
        ("Thanks, Roomtone.", "thanks"),
        ("Hello, Rumtone!", "greeting"),
        ("Rome tone, what did we talk about?", "recap"),
        ("Roomtown, what did Ben say?", "said_by"),
        ("Are you recording this, Room ton?", "recording"),
        ("Thanks, Roomton.", "thanks"),
        ("Who is here, Roomtone?", "who_is_here"),
        ("Roomtone, wie lange reden wir schon?", "how_long"),
        ("Roomtone, wie spät ist es?", "time"),
        ("Roomtone, was hat Ben gesagt?", "said_by"),
        ("Roomtone, what did Ben say about the tent?", None),
        ("Rent on, what are you called?", "name"),
        ("Roomtone?", None),
        ("", None),
    ],
)
async def test_names_do_not_matter(sentences: FirstSentences, said: str, meaning: str | None) -> None:
    """The bot's name is left out, also as recognisers write it, and people's names stand for anybody."""
    assert await sentences.meaning_of(said, names=NAMES, people={"Ben", "Ada"}) == meaning


class Waking:
    """An embedder that fails until it is awake; then all texts are alike."""

    model = "waking"
    awake = False

    async def embed(self, texts: Sequence[str], *, urgent: bool = False) -> Sequence[Sequence[float]]:
        if not self.awake:
            raise EmbeddingError("It is away.", retryable=True)
        return [[1.0]] * len(texts)


@pytest.mark.parametrize(
    ("said", "meaning"),
    [
        ("Roomtone, what time is it?", "time"),
        ("what time is it", "time"),
        ("Delete my data, Roomtone!", "forget"),
        ("Roomtone, wer kann das sehen?", "readers"),
        ("What did Ben say, Roomtone?", "said_by"),
        ("Roomtone, at what time does it start?", None),
        ("Rent on, what can you do?", "help"),
        ("help", "help"),
        ("Hilfe, Roomtone!", "help"),
        ("What can you do, rent on?", "help"),
    ],
)
async def test_without_an_embedder_the_words_of_an_example_are_understood(said: str, meaning: str | None) -> None:
    """Whatever the signs between them."""
    assert await FirstSentences(None).meaning_of(said, names=NAMES, people={"Ben"}) == meaning


async def test_without_an_embedder_nothing_else_is_like_anything() -> None:
    """Neither without one nor with one that fails, until it works: the examples are read again every minute."""
    asked = "Have you got the time?"
    without = FirstSentences(None)
    await without.read_examples(FakeClock())
    assert await without.meaning_of(asked, names=NAMES, people=()) is None
    embedder, clock = Waking(), FakeClock()
    found = FirstSentences(embedder)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(found.read_examples(clock), name="reading")
        for awake in (False, True):
            await clock.until_somebody_sleeps()
            assert await found.meaning_of(asked, names=NAMES, people=()) is None
            embedder.awake = awake
            clock.advance(READ_AGAIN_S)
    assert await found.meaning_of(asked, names=NAMES, people=()) is not None
