"""The summariser without a model: each quote is one person's consecutive words of one turn."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import count, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.language.text import ends_a_sentence, words
from compaction.model import Fact, FactKind, Note, NoteId, Segment, Seq, SessionId, Turn, TurnKind, TurnPart
from compaction.summary.extractive import (
    ExtractiveSummariser,
    compose_paragraph,
    extract_quotes,
    make_gist,
    quote_turns,
)
from compaction.summary.folded import fold_request, make_segment, summary_texts
from compaction.summary.port import NOTHING_KEPT, FoldRequest

_QUOTE = re.compile(r'([^":.!?]+): "([^"]*)"')
_SPOKEN = (
    *("We take the cabin in Braemar", "no", "the code is 4411,", "if Bob drives;", 'he said "never"', "Wait"),
    *("Can you bring the tent", "…", "- I won't. ", "日本に行きます。", "it costs 450 pounds"),
)
SPEECH = st.lists(
    st.tuples(
        st.sampled_from(["Ada", "Bob", "Zoë Q"]),
        st.lists(
            st.sampled_from(_SPOKEN),
            min_size=1,
            max_size=10,
        ),
        st.sampled_from([". ", "? ", ", ", " ", "! ", "\n"]),
    ),
    max_size=10,
)


def turns_of(said: list[tuple[str, list[str], str]]) -> tuple[Turn, ...]:
    return tuple(
        Turn(Seq(seq), TurnKind.SPEECH, seq * 5.0, seq * 5.0 + 3, (TurnPart(who, who, joint.join(pieces)),))
        for seq, (who, pieces, joint) in enumerate(said)
    )


def holds(quote: str, said: str) -> bool:
    """Return whether the words of a quote stand in a row in what somebody said."""
    quoted, spoken = words(quote), words(said)
    return any(spoken[at : at + len(quoted)] == quoted for at in range(len(spoken) - len(quoted) + 1))


@given(said=SPEECH)
def test_each_quote_is_consecutive_words_of_one_turn_of_its_speaker(said: list[tuple[str, list[str], str]]) -> None:
    """In facts, gists and paragraphs nothing is joined, and nothing is rewritten."""
    turns = turns_of(said)
    quotes = extract_quotes(FoldRequest(Seq(0), turns))
    for fact in quotes:
        (seq,) = fact.turns
        (part,) = turns[seq].parts
        who, text = _QUOTE.findall(fact.text)[0]
        assert (who, fact.speaker) == (part.speaker, part.speaker)
        assert holds(text, part.text)
    for told in (compose_paragraph(quotes), make_gist(quotes), quote_turns(turns, max_chars=400)):
        for who, text in _QUOTE.findall(told):
            assert any(who.strip() == part.speaker and holds(text, part.text) for turn in turns for part in turn.parts)


@given(said=SPEECH)
async def test_paragraph_and_gist_fit_and_end_with_a_sentence(said: list[tuple[str, list[str], str]]) -> None:
    """Whatever is said, the limits of spec 1 hold."""
    fold = await ExtractiveSummariser().fold(FoldRequest(Seq(0), turns_of(said)))
    assert len(fold.paragraph) <= 1_200
    assert len(fold.gist) <= 300
    assert ends_a_sentence(fold.paragraph)
    assert ends_a_sentence(fold.gist)


async def test_first_hour_has_a_share_after_thirty_folds() -> None:
    """Each stretch of the evening is told, and what was booked is, though much was said since."""
    numbers = count(10)
    segments: list[Segment] = []
    for batch in range(30):
        said = [
            ("Ada", ["Yeah"], "."),
            ("Bob", [f"We booked the cabin in Braemar number {next(numbers)} for {next(numbers)} pounds"], "."),
            ("Ada", ["I like it"], "."),
        ]
        turns = tuple(
            Turn(Seq(batch * 3 + at), turn.kind, turn.started_at, turn.ended_at, turn.parts)
            for at, turn in enumerate(turns_of(said))
        )
        request = fold_request(turns[0].seq, turns, (), (), segments, newest=segments[-1] if segments else None)
        fold = await ExtractiveSummariser().fold(request)
        segments.append(make_segment(request, fold, session_id=SessionId("s"), revision=batch, at=float(batch)))
    told = segments[-1].paragraph
    figures = [int(each) for each in re.findall(r"number (\d+)", told)]
    assert figures == sorted(figures)
    assert figures[0] < 30
    assert figures[-1] > 60
    assert "Yeah" not in told


def test_answer_and_what_is_taken_up_count_more() -> None:
    """A decision is known by what others make of it, and not by its words."""
    said = [
        ("Ada", ["Who of us drives to the old harbour then"], "?"),
        ("Bob", ["The red van comes along the coast road"], "."),
        ("Ada", ["The green van comes along the north road"], "."),
        ("Bob", ["The white van comes along the south road"], "."),
    ]
    said = [(who, [f"{pieces[0]}{joint}"], "") for who, pieces, joint in said]
    kept = " ".join(fact.text for fact in extract_quotes(FoldRequest(Seq(0), turns_of(said))))
    assert "red van" in kept
    assert "green van" not in kept


def test_names_of_those_who_talk_are_worth_no_quote() -> None:
    """People say them in greeting all evening, also as nicknames; the names of others tell something."""
    said = [
        ("Melanie", ["Oh hey there Ada, so good to see Ada"], "."),
        ("Ada", ["Oh hey there Mel, good to hear Mel"], "."),
    ]
    said += [("Ada", ["We met the painter Okonkwo at the Lisbon fair"], "."), *said, *said]
    (best, *_) = sorted(extract_quotes(FoldRequest(Seq(0), turns_of(said))), key=lambda fact: -fact.importance)
    assert "Okonkwo" in best.text


@pytest.mark.covers("1.15")
def test_nothing_is_quoted_but_what_people_tell_each_other_and_notes_are_told() -> None:
    """The bot repeats people, and what they ask of it tells nothing. A screen is told with whose it is."""
    turn = Turn(Seq(0), TurnKind.ASSISTANT, 0.0, 1.0, (TurnPart("bot", "Roomtone", "The cabin costs 450 pounds."),))
    note = Note(NoteId("n"), 1.0, "Ada", "a map of Tokyo", "Bob asked about it")
    (fact,) = extract_quotes(FoldRequest(Seq(0), (turn,), (note,)))
    assert (fact.text, fact.kind, fact.note_id) == (
        "On Ada's screen (Bob asked about it): a map of Tokyo.",
        FactKind.DOING,
        "n",
    )
    for kind, called in product(TurnKind, (False, True)):
        quoted = extract_quotes(FoldRequest(Seq(0), (replace(turn, kind=kind, called=called),)))
        assert bool(quoted) is (kind is TurnKind.SPEECH and not called)
    assert (compose_paragraph(()), make_gist(())) == (NOTHING_KEPT, NOTHING_KEPT)


def test_quotes_of_a_summary_are_read_back() -> None:
    """Each sentence comes with its speaker; what is no quote has none."""
    summary = 'Ada: "We leave. At nine!" The code is 4411. Bob: "I drive".'
    assert summary_texts(summary) == [
        ("Ada", "We leave."),
        ("Ada", "At nine!"),
        ("Bob", "I drive"),
        ("", "The code is 4411."),
    ]


def test_known_facts_of_a_model_are_told_as_they_stand() -> None:
    """A session that goes on without a model keeps what the model wrote."""
    fact = Fact((Seq(0),), "Ada is allergic to walnuts.", FactKind.LASTING, 3, speaker="Ada")
    assert compose_paragraph([fact]) == fact.text
