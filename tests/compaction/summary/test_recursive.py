"""A rewritten summary paragraph is short, complete and grounded; otherwise it is refused."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from compaction.errors import SummaryRefusedError
from compaction.language.wording import ends_a_sentence
from compaction.model import Seq, Strategy
from compaction.ports import CompletionAnswer, CompletionRequest
from compaction.summary.extractive import ExtractiveSummariser
from compaction.summary.fold_prompts import PARAGRAPH_TOKENS
from compaction.summary.llm import LlmSummariser
from compaction.summary.port import MAX_SUMMARY_CHARS, Fold, FoldRequest
from tests.compaction.turn_store_contract import note, turn

TURNS = (
    turn(10, "Hello everybody."),
    turn(11, "We decided to rent the cabin in Braemar.", speaker="Bob"),
    turn(12, "The gate code is 7023 now."),
    turn(13, "My sister Olga brings the stove.", speaker="Cy"),
)
ROSTER = frozenset({"Ada", "Bob", "Cy", "Dora"})
PREVIOUS = "Ada and Dora planned a hike for Saturday. The gate code is 4411."
REQUEST = FoldRequest(Seq(10), TURNS, (), PREVIOUS, roster=ROSTER, strategy=Strategy.RECURSIVE)
GOOD = "Bob decided to rent the cabin in Braemar. The gate code is 7023 now. Cy's sister Olga brings the stove."
LONG = " ".join(["Ada spoke of the cabin in Braemar at length."] * 40)


class Says:
    """A model that gives these answers in order and then repeats the last one. The answers with the numbers in `cut`
    are cut off.
    """

    model = "says-1"

    def __init__(self, *texts: str, cut: tuple[int, ...] = ()) -> None:
        self.texts = itertools.chain(texts, itertools.repeat(texts[-1]))
        self.cut = cut
        self.requests: list[CompletionRequest] = []

    async def complete(self, request: CompletionRequest) -> CompletionAnswer:
        self.requests.append(request)
        finish = "length" if len(self.requests) in self.cut else "stop"
        return CompletionAnswer(next(self.texts), finish, 300, 40)


def fold(model: Says, request: FoldRequest = REQUEST) -> Fold:
    return asyncio.run(LlmSummariser(model, max_output_tokens=700).fold(request))


def test_good_paragraph_is_taken_whole() -> None:
    """A good paragraph is kept whole after one call, without facts, and the fold names the version of its prompt."""
    model = Says(GOOD)
    result = fold(model)
    assert (result.gist, result.facts, result.form) == (GOOD, (), "recursive.v2")
    assert (result.prompt_tokens, result.completion_tokens) == (300, 40)
    assert len(model.requests) == 1


def test_prompt_has_everything() -> None:
    """The prompt has the previous summary, the turns with number, time and speaker, and the notes. Its token limit is
    below the budget.
    """
    model = Says(GOOD)
    request = FoldRequest(Seq(10), TURNS, (note("n"),), PREVIOUS, roster=ROSTER, strategy=Strategy.RECURSIVE)
    fold(model, request)
    (asked,) = model.requests
    assert PREVIOUS in asked.prompt
    assert "Bob: We decided to rent the cabin in Braemar." in asked.prompt
    assert "Bob's screen: a map with the mark n" in asked.prompt
    assert "[12] " in asked.prompt
    assert (asked.schema, asked.max_output_tokens) == (None, PARAGRAPH_TOKENS)
    assert "1000 characters" in asked.system


def test_cap_grows_with_the_writing() -> None:
    """A script that needs more tokens for the same number of characters gets a higher token limit."""
    model = Says("アダは山小屋を借りることに決めました。")
    words = "アダは山小屋を借りることに決めました。" * 4
    fold(model, FoldRequest(Seq(0), (turn(0, words),), (), None, strategy=Strategy.RECURSIVE))
    assert model.requests[0].max_output_tokens > 2 * PARAGRAPH_TOKENS // 1.5


def test_overlong_paragraph_is_condensed_once() -> None:
    """A paragraph that is too long is sent to the model again as the previous summary, without the turns."""
    model = Says(LONG, GOOD)
    assert fold(model).gist == GOOD
    assert len(model.requests) == 2
    assert LONG in model.requests[1].prompt
    assert "Olga" not in model.requests[1].prompt
    assert "too long" in model.requests[1].prompt


def test_overlong_twice_is_cut_after_a_sentence() -> None:
    """A paragraph that is too long twice is cut after a sentence, as the last resort."""
    gist = fold(Says(LONG)).gist
    assert MAX_SUMMARY_CHARS - 60 < len(gist) <= MAX_SUMMARY_CHARS
    assert ends_a_sentence(gist)


def test_answer_without_an_end_is_asked_again_with_its_turns() -> None:
    """After an answer that was cut off, the turns are sent again, because the newest ones are missing in the answer."""
    model = Says("Ada planned a hike. Bob rents the cab", GOOD, cut=(1,))
    assert fold(model).gist == GOOD
    assert "Ada planned a hike.\n" in model.requests[1].prompt
    assert "Olga" in model.requests[1].prompt


def test_answer_cut_off_twice_is_refused() -> None:
    """An answer that is cut off twice is refused, so an incomplete summary is never stored."""
    with pytest.raises(SummaryRefusedError, match="cut off"):
        fold(Says("Ada planned a hike. Bob rents the cab", cut=(1, 2)))


def test_invented_names_and_numbers_cost_one_more_pass() -> None:
    """If an answer has names or numbers that nobody said, the model is asked once more, with a list of them."""
    model = Says(f"{GOOD} Zebulon pays 900 pounds.", GOOD)
    result = fold(model)
    assert result.gist == GOOD
    assert "900, zebulon" in model.requests[1].prompt
    assert result.prompt_tokens == 600


def test_what_is_invented_again_is_left_out() -> None:
    """If the second answer has invented names or numbers too, the sentences with them are removed and the
    others stay.
    """
    model = Says(f"{GOOD} Zebulon pays 900 pounds.")
    assert fold(model).gist == GOOD
    assert len(model.requests) == 2


CHAT = tuple(
    turn(20 + number, f"I really like the number {word} best of all.", speaker="Bob")
    for number, word in enumerate(("ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen"))
)
TRANSCRIPT = " ".join(f"Bob: {each.parts[0].text}" for each in CHAT)


def test_transcript_costs_one_more_pass() -> None:
    """If a model repeats the turns, as small models do, the model is asked once more with that hint. A second copy is
    refused.
    """
    request = FoldRequest(Seq(20), CHAT, (), None, roster=ROSTER, strategy=Strategy.RECURSIVE)
    model = Says(TRANSCRIPT, "Bob likes the numbers from ten to sixteen.")
    assert fold(model, request).gist == "Bob likes the numbers from ten to sixteen."
    assert "repeated the turns" in model.requests[1].prompt
    with pytest.raises(SummaryRefusedError, match="copied its input"):
        fold(Says(TRANSCRIPT), request)


def test_mostly_invented_paragraph_is_refused() -> None:
    """A paragraph is refused if most of its sentences have no source."""
    with pytest.raises(SummaryRefusedError, match="no source"):
        fold(Says("Zebulon went to Inverness for 900 pounds and Quentin stayed in Aviemore. Bob was there."))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (" \n", "blank"),
        ("Error: the conversation is too long to summarize.", "error text"),
        ("I'm sorry, but I can't summarise this.", "refused"),
        ("Sure, take the left door. Let me know if you need more!", "replied to the conversation"),
        ('{"gist": "a"}', "no prose"),
        ("?!", "no prose"),
        (PREVIOUS, "copied the previous summary"),
        ("[10] 21:04 Ada: Hello. [11] 21:04 Bob: We rent the cabin.", "copied its input"),
    ],
)
def test_what_is_no_summary_is_refused(text: str, reason: str) -> None:
    """Each unusable answer is refused with a reason of its own for the log."""
    with pytest.raises(SummaryRefusedError, match=reason):
        fold(Says(text))


@pytest.mark.parametrize(
    "heading",
    [
        "Summary: ",
        "**Updated summary**\n\n",
        "Here is the summary of the conversation:\n\n",
        "Sure! Here's a summary:\n",
        "```\n",
    ],
)
def test_heading_is_taken_off(heading: str) -> None:
    """A heading in front of the paragraph is removed, because small models announce what they write."""
    assert fold(Says(heading + GOOD)).gist == GOOD


def test_headings_of_the_prompt_are_taken_out() -> None:
    """Headings that the model copied from the prompt are removed, and the text under them is kept."""
    first, rest = GOOD.split(". ", 1)
    said = f"Previous summary: {first}. On shared screens meanwhile: {rest}"
    assert fold(Says(said)).gist == GOOD


def test_last_sentence_without_a_stop_gets_one() -> None:
    """If the last sentence has no full stop, one is added."""
    assert fold(Says(GOOD.rstrip("."))).gist == GOOD


def test_previous_summary_may_stay_when_nothing_was_said() -> None:
    """The previous summary may stay unchanged if the new turns are only filler."""
    filler = FoldRequest(
        Seq(10), (turn(10, "Haha."), turn(11, "Yeah, okay.")), (), PREVIOUS, strategy=Strategy.RECURSIVE
    )
    assert fold(Says(PREVIOUS), filler).gist == PREVIOUS


def test_extractor_retells_without_a_model() -> None:
    """Without a model the extractor writes a paragraph of the same form from the paragraph so far and the batch. The
    newest values are kept first, and a corrected value is removed.
    """
    result = asyncio.run(ExtractiveSummariser().fold(REQUEST))
    assert (result.facts, result.form) == ((), "recursive")
    assert "Bob: We decided to rent the cabin in Braemar." in result.gist
    assert "7023" in result.gist
    assert "planned a hike for Saturday" in result.gist
    assert len(result.gist) <= MAX_SUMMARY_CHARS
    assert asyncio.run(ExtractiveSummariser().fold(REQUEST)) == result


@pytest.mark.slow
def test_extractor_retells_over_and_over_within_the_budget() -> None:
    """Over a hundred batches without a model, the extractor's paragraph keeps its limit and ends with a sentence."""
    previous: str | None = None
    for batch in range(100):
        turns = tuple(turn(batch * 10 + k, f"The room {batch * 10 + k} has {k + 3} beds.") for k in range(10))
        request = FoldRequest(Seq(batch * 10), turns, (), previous, strategy=Strategy.RECURSIVE)
        previous = asyncio.run(ExtractiveSummariser().fold(request)).gist
        assert 0 < len(previous) <= MAX_SUMMARY_CHARS
        assert ends_a_sentence(previous)
