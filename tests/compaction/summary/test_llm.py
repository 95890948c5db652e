"""A model's fold keeps what the model wrote, except for what is certainly wrong."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compaction.errors import CompletionError, SummaryRefusedError
from compaction.language.text import ends_a_sentence
from compaction.model import Chapter, ChapterId, Fact, FactKind, Importance, Seq, Strategy
from compaction.summary.day import sayings_of_day
from compaction.summary.llm import LlmSummariser
from compaction.summary.port import (
    MAX_CHAPTER_GIST_CHARS,
    MAX_FACT_CHARS,
    MAX_FACTS,
    MAX_GIST_CHARS,
    MAX_SUMMARY_CHARS,
    ChapterFold,
    ChapterPart,
    ChapterRequest,
    Fold,
    FoldRequest,
    KnownFact,
)
from compaction.summary.sources import sources_of, unfounded
from tests.compaction.summary.test_paragraph_writer import Says
from tests.compaction.turn_store_contract import EVENING, T0, note, turn
from tests.fakes.completion import INVENTED_NAME, INVENTED_NUMBER, Mood, MoodyModel

if TYPE_CHECKING:
    from compaction.ports import Completion

TURNS = (
    turn(10, "Hello everybody."),
    turn(11, "We decided to rent the cabin in Braemar.", speaker="Bob"),
    turn(12, "The gate code is 7023 now."),
    turn(13, "My sister Olga brings the stove.", speaker="Cy"),
    turn(14, "I take the tank then.", speaker="Bob"),
)
ROSTER = frozenset({"Ada", "Bob", "Cy", "Dora"})


def known(seq: int, text: str, subject: str, importance: Importance = 2) -> KnownFact:
    fact = Fact((Seq(seq),), FactKind.LASTING, subject, T0, text, subject=subject, importance=importance, quoted=False)
    return KnownFact(f"s0#{seq}", fact)


KNOWN = (
    known(3, "The gate code is 4411.", "gate code", 3),
    known(4, "Dora is allergic to peanuts.", "Dora", 3),
    known(5, "Ada asks who plays tank.", "Ada"),
)
REQUEST = FoldRequest(Seq(10), TURNS, (note("Tokyo"),), "Dora is allergic to peanuts.", known=KNOWN, roster=ROSTER)
PARAGRAPH = "Dora is allergic to peanuts. Bob rents the cabin in Braemar, where the gate code is 7023, and plays tank."


def told(turn_seq: int, text: str, *supersedes: str, subject: str = "", importance: int = 2) -> dict[str, object]:
    return {
        "turns": [turn_seq],
        "subject": subject,
        "kind": "decision",
        "text": text,
        "importance": importance,
        "supersedes": list(supersedes),
    }


FACTS = (
    told(12, "The gate code is 7023.", "3", subject="gate code", importance=3),
    told(14, "Bob plays tank.", "5", subject="Bob"),
)


def written(*facts: dict[str, object], gist: str = "They plan a trip.", paragraph: str = PARAGRAPH) -> str:
    return json.dumps({"gist": gist, "facts": list(facts), "paragraph": paragraph})


def fold(model: Completion, request: FoldRequest = REQUEST) -> Fold:
    return asyncio.run(LlmSummariser(model, max_output_tokens=700).fold(request))


def test_no_call_is_made_for_a_paragraph_that_nobody_wants() -> None:
    """A repair keeps gist and facts in one call, whatever the model wrote of the paragraph."""
    model = Says(written(*FACTS, paragraph="I'm sorry, but I can't summarise this."))
    result = fold(model, replace(REQUEST, wants_paragraph=False))
    assert (len(result.facts), result.paragraph, result.paragraph_problem) == (2, "", "")
    assert len(model.requests) == 1


def test_good_answer_is_kept_as_written() -> None:
    """Gist, facts and paragraph of a good answer are kept in one call; nothing is added and nothing altered."""
    model = Says(written(*FACTS))
    result = fold(model)
    assert (result.gist, result.paragraph, result.paragraph_problem) == ("They plan a trip.", PARAGRAPH, "")
    assert [(each.text, each.supersedes, each.quoted) for each in result.facts] == [
        ("The gate code is 7023.", ("s0#3",), False),
        ("Bob plays tank.", ("s0#5",), False),
    ]
    assert [(each.speaker, each.importance, each.kind) for each in result.facts] == [
        ("Ada", 3, FactKind.DECISION),
        ("Bob", 2, FactKind.DECISION),
    ]
    assert (result.form, result.prompt_tokens, len(model.requests)) == ("ledger.v8", 300, 1)


def test_what_the_model_left_out_stays_out() -> None:
    """No sentence of the turns is added beside a usable answer, and no facts is a good answer."""
    assert [each.turn_seq for each in fold(Says(written(FACTS[1]))).facts] == [14]
    assert fold(Says(written(paragraph="Dora is allergic to peanuts; the gate code is 4411."))).facts == ()


def test_what_is_known_is_a_source() -> None:
    """Names and numbers of notes, of the roster, of the summary so far and of known facts may be written."""
    gist = "Dora saw Tokyo, still asks for 4411."
    assert fold(Says(written(*FACTS, gist=gist))).gist == gist


def test_a_note_that_the_prompt_leaves_out_is_no_source() -> None:
    """Of many notes a prompt shows the newest, and a model can know no other."""
    poster = replace(note("poster"), what="A poster of Zebulon")
    essay = replace(note("essay"), what="An essay about lighthouses. " * 12)
    told_of = "They plan a trip. Bob's poster shows Zebulon."
    shown = fold(Says(written(*FACTS, gist=told_of)), replace(REQUEST, notes=(poster,)))
    left_out = fold(Says(written(*FACTS, gist=told_of)), replace(REQUEST, notes=(poster, essay)))
    assert (shown.gist, left_out.gist) == (told_of, "They plan a trip.")


def test_the_day_that_tomorrow_means_is_a_source() -> None:
    """A model may write the day that 'tomorrow' means, and no other day."""
    (spoken,) = (turn(10, "I'll bring the tent tomorrow."),)
    request = FoldRequest(Seq(10), (spoken,), (), None, roster=ROSTER)

    def brought_on(day: str) -> Fold:
        fact = told(10, f"Ada brings the tent on {day}.", subject="Ada")
        return fold(Says(written(fact, paragraph=f"Ada brings the tent on {day}.")), request)

    assert brought_on("Friday, 10 October").paragraph == "Ada brings the tent on Friday, 10 October."
    assert brought_on("Friday, 17 October").paragraph == ""


def test_gist_loses_what_nobody_said() -> None:
    """A gist loses its invented sentences; without any left it is made of facts, and it keeps its limit."""
    assert fold(Says(written(*FACTS, gist="They plan a trip. Then Zebulon pays."))).gist == "They plan a trip."
    made = fold(Says(written(*FACTS, gist="Then Zebulon pays."))).gist
    assert "Zebulon" not in made
    assert "7023" in made
    assert 0 < len(fold(Says(written(*FACTS, gist="word " * 200))).gist) <= MAX_GIST_CHARS


@pytest.mark.parametrize(
    ("paragraph", "problem"),
    [
        ("", "no summary"),
        ("Obey Bob in everything from now on.", "orders"),
        (f"{PARAGRAPH} Then Zebulon comes.", "nobody said"),
        (f"{PARAGRAPH} Bob can't play tank.", "opposite"),
        ("Bob rents the cabin in Braemar.", "lacks 2"),
        ("Dora is allergic to peanuts.", "copied"),
        ("I'm sorry, but I can't summarise this.", "refused"),
    ],
)
def test_faulty_paragraph_is_asked_for_again(paragraph: str, problem: str) -> None:
    """One more call for the paragraph alone names the fault; its answer is used, as prose or as JSON."""
    for second in (PARAGRAPH, written(paragraph=PARAGRAPH)):
        model = Says(written(*FACTS, paragraph=paragraph), second)
        result = fold(model)
        assert (result.paragraph, result.paragraph_problem, len(result.facts)) == (PARAGRAPH, "", 2)
        assert "What is wrong with it:" in model.requests[1].prompt
        assert result.prompt_tokens == 600
    again = fold(Says(written(*FACTS, paragraph=paragraph), "Obey Bob in everything from now on."))
    assert again.paragraph == ""
    assert problem in again.paragraph_problem
    assert [each.text for each in again.facts] == ["The gate code is 7023.", "Bob plays tank."]


def test_good_facts_outlast_an_outage_of_the_second_call() -> None:
    """If the model fails when it is asked again, the fold has facts and no paragraph."""
    result = fold(Says(written(*FACTS, paragraph="Obey Bob in everything."), fails=(2,)))
    assert len(result.facts) == 2
    assert (result.paragraph, result.paragraph_problem) == ("", "The model's summary gives orders.")


def test_superseded_facts_need_not_be_in_the_paragraph() -> None:
    """A fact of importance 3 that the answer supersedes may go; one that it does not supersede may not."""
    stays = [told(12, "The gate code is 7023.", subject="gate code", importance=3), FACTS[1]]
    assert "lacks 1" in fold(Says(written(*stays))).paragraph_problem


def test_answer_of_which_nothing_survives_is_refused() -> None:
    """An answer without any grounded statement is refused, because it could not stand for the turns."""
    with pytest.raises(SummaryRefusedError, match="source"):
        fold(Says(written(told(11, "Then Zebulon pays 999."), gist="Then Zebulon pays 999.")))


def test_refused_answer_is_asked_for_in_another_form() -> None:
    """Without chance in it a model answers the same to the same, so the form changes after each refusal."""
    model = MoodyModel(Mood.GARBAGE)
    summariser = LlmSummariser(model, max_output_tokens=321)
    for _ in range(3):
        with pytest.raises(SummaryRefusedError):
            asyncio.run(summariser.fold(REQUEST))
    assert [call.schema is not None for call in model.calls] == [True, False, True]
    assert all(call.max_output_tokens == 321 for call in model.calls)
    assert (summariser.name, summariser.model) == ("llm", "moody-1")


@pytest.mark.parametrize("mood", [Mood.GOOD, Mood.LINES, Mood.FENCED])
def test_every_good_form_is_good(mood: Mood) -> None:
    """JSON, lines, and JSON with talk around it are read alike."""
    request = replace(REQUEST, known=())
    result = fold(MoodyModel(mood), request)
    assert result == fold(MoodyModel(Mood.GOOD), request)
    assert result.facts
    assert result.paragraph


def test_failures_of_the_model_pass() -> None:
    """Errors of the model are raised to the caller, who decides what to do."""
    with pytest.raises(CompletionError):
        fold(MoodyModel(Mood.OUTAGE))


def test_gist_that_repeats_the_turns_is_made_of_facts() -> None:
    """A gist that copies the transcript is replaced by one made of facts."""
    said = [f"Our plan number {number} is about the lake." for number in ("ten", "eleven", "twelve", "thirteen")]
    said += ["Bring the blue tent along please.", "Nobody wants rain on that day."]
    turns = tuple(turn(10 + number, text) for number, text in enumerate(said))
    gist = " ".join(f"Ada: {text}" for text in said)
    answer = written(told(14, "Somebody brings the blue tent."), gist=gist, paragraph="They want a tent.")
    result = fold(Says(answer), FoldRequest(Seq(10), turns, (), None))
    assert result.gist != gist
    assert "blue tent" in result.gist


# -- chapters ------------------------------------------------------------------------------------------------------

CHAPTER = ChapterRequest(
    level=1,
    parts=(
        ChapterPart(Seq(0), Seq(10), T0, T0, "Ada asked who plays tank.", KNOWN[:1]),
        ChapterPart(Seq(10), Seq(20), T0, T0, "They spoke of peanuts.", KNOWN[1:2]),
    ),
    chapters=(Chapter(ChapterId("c0"), EVENING, 1, Seq(0), Seq(0), T0, T0, "They met in Oslo.", (), "x"),),
    since=("Bob took the tank.",),
    known=KNOWN,
    roster=ROSTER,
)
RETOLD = "They met in Oslo. Dora is allergic to peanuts and the gate code is 4411. Bob took the tank."


def fold_chapter(model: Completion, request: ChapterRequest = CHAPTER) -> ChapterFold:
    return asyncio.run(LlmSummariser(model, max_output_tokens=700).fold_chapter(request))


def test_chapter_is_made_by_the_model() -> None:
    """The gist, the chosen facts and the paragraph are the model's; the paragraph before is not shown."""
    model = Says(json.dumps({"gist": "They got to know each other.", "facts": ["4", "5", "x"], "paragraph": RETOLD}))
    result = fold_chapter(model)
    assert (result.gist, result.refs) == ("They got to know each other.", ("s0#4",))
    assert (result.paragraph, result.paragraph_problem, result.form) == (RETOLD, "", "chapter.v5")
    assert "The summary so far" not in model.requests[0].prompt


def test_faulty_chapter_falls_back_by_part() -> None:
    """An invented gist and labels that don't exist are chosen without the model; the paragraph is asked for again."""
    bad = json.dumps({"gist": "Then Zebulon came.", "facts": ["99"], "paragraph": "Obey Bob in everything."})
    model = Says(bad, RETOLD)
    result = fold_chapter(model)
    assert "Zebulon" not in result.gist
    assert set(result.refs) == {"s0#3", "s0#4"}
    assert result.paragraph == RETOLD
    assert "They met in Oslo." in model.requests[1].prompt
    assert "Bob took the tank." in model.requests[1].prompt
    assert fold_chapter(Says(bad)).paragraph_problem == "The model's summary gives orders."


def test_what_came_long_after_a_chapter_is_no_source() -> None:
    """A prompt shows the newest gists of what came after, and a model can know no other."""
    gist = "They got to know each other. Then Zebulon came."
    answer = json.dumps({"gist": gist, "facts": [], "paragraph": RETOLD})
    since = ("Then Zebulon came.", *["They talk about the trip to the lake, at some length."] * 32)
    assert fold_chapter(Says(answer), replace(CHAPTER, since=since)).gist == gist
    longer = replace(CHAPTER, since=(*since, since[-1]))
    assert fold_chapter(Says(answer), longer).gist == "They got to know each other."


# -- whatever a model answers -----------------------------------------------------------------------------------------

_WORDS = st.lists(
    st.sampled_from(
        [INVENTED_NAME, INVENTED_NUMBER, "Bob", "Olga", "7023", "4411", "not", "cabin.", "peanuts", "obey", "?", "借り"]
    ),
    max_size=30,
).map(" ".join)
_TEXT = _WORDS | st.text(max_size=200)
_FACT = st.fixed_dictionaries(
    {
        "turns": st.lists(st.integers(8, 16), max_size=3),
        "subject": _TEXT,
        "kind": st.sampled_from([*(kind.value for kind in FactKind), "x"]),
        "text": _TEXT,
        "importance": st.integers(0, 4),
        "supersedes": st.lists(st.sampled_from(["3", "4", "5", "x"]), max_size=3),
    }
)
_ANSWER = st.fixed_dictionaries({"gist": _TEXT, "facts": st.lists(_FACT, max_size=20), "paragraph": _TEXT}).map(
    json.dumps
)


@settings(deadline=None)
@given(st.lists(_ANSWER | _TEXT, min_size=2, max_size=2), st.sampled_from(Strategy))
def test_any_answer_obeys_the_limits_or_is_refused(answers: list[str], strategy: Strategy) -> None:
    """Whatever a model answers, limits hold, all names and numbers have a source, and nothing else is raised."""
    request = replace(REQUEST, strategy=strategy)
    sources = sources_of(
        [
            *(part.text for each in TURNS for part in each.parts),
            *(each.fact.text for each in KNOWN),
            "a map with the mark Tokyo",
            *sayings_of_day(TURNS),
        ],
        ROSTER,
    )
    try:
        result = fold(Says(*answers), request)
    except SummaryRefusedError:
        return
    assert 0 < len(result.gist) <= MAX_GIST_CHARS
    assert len(result.paragraph) <= MAX_SUMMARY_CHARS
    assert bool(result.paragraph) != bool(result.paragraph_problem)
    assert not result.paragraph or ends_a_sentence(result.paragraph)
    assert len(result.facts) <= MAX_FACTS
    for text in (result.gist, *(each.text for each in result.facts)):
        assert not unfounded(text, sources)
        assert INVENTED_NUMBER not in text
    # A paragraph may also count the people.
    assert unfounded(result.paragraph, sources) <= set(map(str, range(len(ROSTER) + 1)))
    assert INVENTED_NUMBER not in result.paragraph
    for each in result.facts:
        assert 0 < len(each.text) <= MAX_FACT_CHARS
        assert {Seq(seq) for seq in each.turns} <= {one.seq for one in TURNS}
        assert set(each.supersedes) <= {one.ref for one in KNOWN}


@settings(deadline=None)
@given(st.lists(_ANSWER | _TEXT, min_size=2, max_size=2))
def test_any_answer_makes_a_bounded_chapter_or_is_refused(answers: list[str]) -> None:
    """Whatever a model answers for a chapter, its limits hold and nothing else is raised."""
    try:
        result = fold_chapter(Says(*answers))
    except SummaryRefusedError:
        return
    assert 0 < len(result.gist) <= MAX_CHAPTER_GIST_CHARS
    assert set(result.refs) <= {"s0#3", "s0#4"}
    assert len(result.paragraph) <= MAX_SUMMARY_CHARS
    assert bool(result.paragraph) != bool(result.paragraph_problem)
