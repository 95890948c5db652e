"""A model's fold is checked against the turns, and the extractor adds the facts that the model left out."""

from __future__ import annotations

import asyncio
import json

import pytest

from compaction.errors import CompletionError, SummaryRefusedError
from compaction.model import Fact, FactKind, Seq
from compaction.ports import CompletionAnswer, CompletionRequest
from compaction.summary.llm import LlmSummariser
from compaction.summary.port import MAX_FACTS, MAX_GIST_CHARS, Fold, FoldRequest, KnownFact
from tests.compaction.turn_store_contract import T0, bot_turn, note, turn
from tests.fakes.completion import Mood, MoodyModel

TURNS = (
    turn(10, "Hello everybody."),
    turn(11, "We decided to rent the cabin in Braemar.", speaker="Bob"),
    turn(12, "The gate code is 7023 now."),
    turn(13, "My sister Olga brings the stove.", speaker="Cy"),
)
ROSTER = frozenset({"Ada", "Bob", "Cy", "Dora"})
OLD = Fact((Seq(3),), FactKind.DECISION, "Ada", T0, "The gate code is 4411.")


def known(ref: str, fact: Fact) -> KnownFact:
    return KnownFact(ref, fact)


class Says:
    """A model that gives one answer."""

    model = "says-1"

    def __init__(self, gist: str, *facts: dict[str, object], raw: str | None = None) -> None:
        self.text = json.dumps({"gist": gist, "facts": list(facts)}) if raw is None else raw
        self.requests: list[CompletionRequest] = []

    async def complete(self, request: CompletionRequest) -> CompletionAnswer:
        self.requests.append(request)
        return CompletionAnswer(self.text, "stop", 321, 45)


def fold(model: Says | MoodyModel, request: FoldRequest | None = None) -> Fold:
    default = FoldRequest(Seq(10), TURNS, (), "Earlier they met.", roster=ROSTER)
    summariser = LlmSummariser(model, max_output_tokens=700)
    return asyncio.run(summariser.fold(default if request is None else request))


def told(seq: int, text: str, kind: str = "decision", supersedes: list[int] | None = None) -> dict[str, object]:
    return {"turn_seq": seq, "kind": kind, "text": text, "supersedes": supersedes or []}


def test_speaker_and_time_come_from_the_turn() -> None:
    """The speaker and time of a fact come from the turn, whatever the model says."""
    result = fold(Says("They plan a trip.", told(11, "rents the cabin in Braemar")))
    fact = next(fact for fact in result.facts if fact.turn_seq == 11)
    assert (fact.speaker, fact.at, fact.text) == ("Bob", T0 + 33.0, "rents the cabin in Braemar.")
    assert (result.gist, result.prompt_tokens, result.completion_tokens) == ("They plan a trip.", 321, 45)


def test_extractor_adds_what_the_model_left_out() -> None:
    """The extractor adds the facts that the model left out. All facts are in the order of talk, and none is there
    twice.
    """
    result = fold(Says("They plan a trip.", told(11, "Decided to rent the cabin in Braemar")))
    assert [fact.attributed_text for fact in result.facts] == [
        "Bob: Decided to rent the cabin in Braemar.",
        "Ada: The gate code is 7023 now.",
        "Cy: My sister Olga brings the stove.",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "Zebulon rents the cabin in Braemar",
        "rents the cabin in Inverness",
        "rents the cabin for 900 pounds",
        "Dora said the cabin is taken",
    ],
)
def test_invented_names_numbers_and_speakers_cost_the_fact(text: str) -> None:
    """A fact with an invented name, number or speaker is replaced by the sentence of its turn."""
    result = fold(Says("They plan a trip.", told(11, text)))
    assert [fact.text for fact in result.facts if fact.turn_seq == 11] == ["We decided to rent the cabin in Braemar."]


def test_facts_of_turns_outside_the_batch_are_dropped() -> None:
    """A fact that cites a turn outside the batch is dropped."""
    result = fold(Says("They plan a trip.", told(99, "rents the cabin"), told(0, "rents the cabin")))
    assert {fact.turn_seq for fact in result.facts} == {11, 12, 13}


def test_gist_loses_the_sentences_without_a_source() -> None:
    """Sentences without a source are removed from the gist. If none is left, or the gist is too long, a gist is made
    from the facts.
    """
    assert fold(Says("They plan a trip. Zebulon pays.", told(11, "rents it"))).gist == "They plan a trip."
    made = fold(Says("Zebulon pays.", told(11, "rents the cabin"))).gist
    assert "Zebulon" not in made
    assert "Braemar" in made or "7023" in made
    overlong = fold(Says("word " * 200, told(11, "rents the cabin"))).gist
    assert 0 < len(overlong) <= MAX_GIST_CHARS


def test_answer_of_which_nothing_survives_is_refused() -> None:
    """An answer without any grounded statement is refused, because it could not stand for the turns."""
    with pytest.raises(SummaryRefusedError, match="source"):
        fold(Says("Zebulon pays 999.", told(11, "Zebulon pays")))


def test_corrections_name_what_they_replace() -> None:
    """A fact replaces an earlier one if both are about the same thing. If the model names an unrelated fact as
    replaced, that is ignored.
    """
    request = FoldRequest(Seq(10), TURNS, (), None, known=(known("s0#4", OLD),), roster=ROSTER)
    model = Says("They plan.", told(12, "The gate code is 7023", supersedes=[1]))
    (fact,) = (fact for fact in fold(model, request).facts if fact.turn_seq == 12)
    assert fact.supersedes == ("s0#4",)
    assert "(1) Ada: The gate code is 4411." in model.requests[0].prompt
    unrelated = Says("They plan.", told(11, "rents the cabin in Braemar", supersedes=[1, 7, 0, -1]))
    (fact,) = (fact for fact in fold(unrelated, request).facts if fact.turn_seq == 11)
    assert fact.supersedes == ()


def test_names_from_notes_roster_and_summary_have_a_source() -> None:
    """Names and numbers may come from the turns, the notes, the list of participants or the previous summary."""
    request = FoldRequest(Seq(10), TURNS, (note("Tokyo"),), "Hamish drove 88 miles.", roster=ROSTER)
    result = fold(Says("Dora and Hamish saw Tokyo after 88 miles.", told(11, "rents the cabin with Dora")), request)
    assert result.gist == "Dora and Hamish saw Tokyo after 88 miles."
    assert any(fact.text == "rents the cabin with Dora." for fact in result.facts)
    assert any(fact.note_id == "Tokyo" for fact in result.facts)


def test_many_facts_stay_within_a_segment() -> None:
    """A segment keeps its limit of facts, however many the model writes."""
    facts = [told(11, f"rents the cabin in Braemar {'with the tent ' * number}") for number in range(40)]
    assert len(fold(Says("They plan.", *facts)).facts) <= MAX_FACTS


@pytest.mark.parametrize("mood", [Mood.GOOD, Mood.LINES, Mood.FENCED])
def test_every_good_form_is_good(mood: Mood) -> None:
    """Answers in JSON, in plain lines, and in JSON with other text around it are all accepted."""
    assert fold(MoodyModel(mood)).facts


def test_wrong_speakers_never_get_in() -> None:
    """A fact attributed to Bob is dropped unless Bob said it."""
    for fact in fold(MoodyModel(Mood.WRONG_SPEAKER)).facts:
        assert fact.speaker == TURNS[fact.turn_seq - 10].parts[0].speaker
        assert not fact.text.startswith("Bob said")


def test_failures_of_the_model_pass() -> None:
    """Errors of the model are raised, and the caller decides what to do."""
    with pytest.raises(CompletionError):
        fold(MoodyModel(Mood.OUTAGE))


def test_form_changes_after_an_unreadable_answer() -> None:
    """The first request asks for JSON with a schema. After each refused answer the summariser changes between plain
    lines and JSON.
    """
    model = MoodyModel(Mood.GARBAGE)
    summariser = LlmSummariser(model, max_output_tokens=321)
    request = FoldRequest(Seq(10), TURNS, (), None, roster=ROSTER)
    for _ in range(3):
        with pytest.raises(SummaryRefusedError):
            asyncio.run(summariser.fold(request))
    assert [call.schema is not None for call in model.calls] == [True, False, True]
    assert all(call.max_output_tokens == 321 for call in model.calls)
    assert (summariser.name, summariser.model) == ("llm", "moody-1")


@pytest.mark.parametrize(
    "text", ["Gate", "Ada, Bob, Cy, Dora", "code, cabin, stove, sister", "Olga and Bob take the stove to the cabin"]
)
def test_what_the_cited_turn_does_not_say_is_dropped(text: str) -> None:
    """A fact that its cited turn does not state is dropped: small models list key words and cite any turn."""
    result = fold(Says("They plan a trip.", told(12, text)))
    assert [fact.attributed_text for fact in result.facts if fact.turn_seq == 12] == ["Ada: The gate code is 7023 now."]


def test_facts_of_turns_that_say_nothing_are_left_out() -> None:
    """A fact of a turn that says nothing lasting is left out, however the model words it."""
    turns = (turn(10, "She was fine, really."), turn(11, "We rent the cabin in Braemar."))
    answer = told(10, "The person was fine.")
    assert [
        fact.turn_seq for fact in fold(Says("They rent a cabin.", answer), FoldRequest(Seq(10), turns, (), None)).facts
    ] == [11]


def test_refused_answer_is_asked_for_in_another_form() -> None:
    """After a refused answer the next request asks for another form, because a model without randomness gives the same
    answer to the same prompt.
    """
    model = Says("Zebulon went to Inverness.")
    summariser = LlmSummariser(model, max_output_tokens=700)
    request = FoldRequest(Seq(10), (turn(10, "We rent the cabin in Braemar."),), (), None)
    for _ in range(2):
        with pytest.raises(SummaryRefusedError, match="has a source"):
            asyncio.run(summariser.fold(request))
    assert [asked.schema is None for asked in model.requests] == [False, True]


def test_writing_without_spaces_is_not_compared_word_by_word() -> None:
    """In scripts without spaces a fact is not compared with its turn word by word, because there are no words to
    compare.
    """
    turns = (turn(10, "山小屋を借りることに決めました。"),)
    result = fold(Says("山小屋を借ります。", told(10, "山小屋を借りる。")), FoldRequest(Seq(10), turns, (), None))
    assert "山小屋を借りる。" in [fact.text for fact in result.facts]


def test_gist_that_repeats_the_turns_is_made_of_facts() -> None:
    """A gist that copies the transcript is replaced by one made of facts."""
    said = [f"Our plan number {number} is about the lake." for number in ("ten", "eleven", "twelve", "thirteen")]
    said += ["Bring the blue tent along please.", "Nobody wants rain on that day."]
    turns = tuple(turn(10 + number, text) for number, text in enumerate(said))
    gist = " ".join(f"Ada: {text}" for text in said)
    result = fold(Says(gist, told(14, "Bring the blue tent along")), FoldRequest(Seq(10), turns, (), None))
    assert result.gist != gist
    assert "blue tent" in result.gist


def test_the_bots_own_words_are_believed_only_where_they_are_its_own() -> None:
    """A fact that the bot only repeated stays with the person who said it, and the bot's statements replace no fact of
    a person.
    """
    turns = (
        *TURNS,
        bot_turn(14, "Just now, Bob said: We decided to rent the cabin in Braemar. The gate code is 4400."),
        bot_turn(15, "I looked it up: the ferry to Braemar takes 40 minutes."),
    )
    model = Says(
        "They plan a trip.",
        told(14, "Decided to rent the cabin in Braemar"),
        told(14, "The gate code is 4400", supersedes=[1]),
        told(15, "The ferry to Braemar takes 40 minutes"),
    )
    request = FoldRequest(Seq(10), turns, (), None, known=(known("a#0", OLD),), roster=ROSTER | {"Roomtone"})
    by_bot = [fact for fact in fold(model, request).facts if fact.speaker == "Roomtone"]
    assert [(fact.text, fact.supersedes) for fact in by_bot] == [
        ("The gate code is 4400.", ()),
        ("The ferry to Braemar takes 40 minutes.", ()),
    ]
