"""The payload for a model: the order of its parts, turn headers, shrinking to a limit, and full coverage (invariant 1
of COMPACTION).
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compaction.context.build import SessionContext, build_payload
from compaction.context.turn_text import FORGOTTEN, MAX_TURN_CHARS, format_turn
from compaction.errors import ContextOverflowError
from compaction.memory.chapters import chapters_of
from compaction.model import Mode, Note, Seq, Turn, TurnKind, TurnPart
from compaction.payload import PartKind, PayloadPart, coverage, make_part
from compaction.untrusted_text import without_marks
from tests.compaction.segments import batch, fact
from tests.compaction.turn_store_contract import T0, note, turn

SYSTEM = ["You take part in a conversation."]


def context(
    *,
    total: int = 70,
    cursor: int = 10,
    summary: str | None = "Ada: We leave at nine.",
    notes: tuple[Note, ...] = (),
    words: int = 4,
) -> SessionContext:
    """Return a context of a session with `total` turns, in which the last turn is answered."""
    turns = [turn(seq, " ".join(["word"] * words) + f" {seq}") for seq in range(cursor, total)]
    return SessionContext(
        mode=Mode.SUMMARY,
        cursor=Seq(cursor),
        summary=summary,
        summary_revision=1,
        summary_started_at=T0,
        summary_ended_at=T0 + 600.0,
        window=tuple(turns[:-1]),
        live_notes=notes,
        current=turns[-1],
        max_input_tokens=100_000,
    )


def kinds(payload: tuple[PayloadPart, ...]) -> list[str]:
    """Return the kinds of the parts in order, with repetitions in a row once."""
    order: list[str] = []
    for each in payload:
        if order[-1:] != [each.kind.value]:
            order.append(each.kind.value)
    return order


def cost(payload: tuple[PayloadPart, ...]) -> int:
    return sum(each.tokens for each in payload)


def recalled(text: str) -> PayloadPart:
    return make_part("system", PartKind.RECALL, text)


# -- the order and the words ---------------------------------------------------------------------------------


def test_chapters_follow_the_summary() -> None:
    """Each with its time, as far as they have room; one alone is what the summary tells."""
    segments = [
        replace(batch(at, fact(at * 10, f"Fact {at}."), gist=f"Gist {at}."), heading="AB"[at // 2]) for at in range(4)
    ]
    chapters = chapters_of(segments)
    (_, summary, told, *_) = build_payload(replace(context(), chapters=chapters), system=SYSTEM)
    assert (summary.kind, told.kind, told.seq_from) == (PartKind.SUMMARY, PartKind.CHAPTER, None)
    assert without_marks(told.content) == (
        "Its chapters:\nfrom 08:53 to 08:53, A: Fact 0. Fact 1.\nfrom 08:53 to 08:53, B: Fact 2. Fact 3."
    )
    alone = build_payload(replace(context(), chapters=chapters[:1]), system=SYSTEM)
    assert "chapter" not in kinds(alone)


def test_what_is_asked_of_the_chapters_stands_behind_the_window() -> None:
    """Before the quotes, and only what the chapters have no room for where they stand."""
    talks = [f"Ada sails to island {at} with the cook and the whole crew of the ship." for at in range(200)]
    segments = [
        replace(
            batch(at, fact(at * 10, f"Bo met captain {at}.") if at == 3 else fact(at * 10, talk)), heading=f"{at // 2}"
        )
        for at, talk in enumerate(talks)
    ]
    here = context()
    asks = replace(here, chapters=chapters_of(segments), current=turn(69, "Roomtone, which captain did Bo meet?"))
    payload = build_payload(asks, system=SYSTEM, recall=[recalled("Bob said: left.")])
    assert kinds(payload) == ["system", "summary", "chapter", "turn", "chapter", "recall", "current"]
    assert "Bo met captain 3." in payload[-3].content
    assert "island 9 " not in payload[-3].content
    without = build_payload(replace(asks, current=turn(69, "Who is hungry?")), system=SYSTEM)
    assert kinds(without) == ["system", "summary", "chapter", "turn", "current"]


def test_a_note_stands_where_it_was_seen() -> None:
    """Between the turns of that time; before all of them, or behind them, if it is older or newer than they are."""
    turns = context().window
    seen = [T0, turns[3].started_at + 1.0, turns[-1].started_at + 1.0]
    payload = build_payload(context(notes=tuple(note(f"n{at}", at=at) for at in seen)), system=SYSTEM)
    assert kinds(payload) == ["system", "summary", "note", "turn", "note", "turn", "note", "current"]
    at = [each.kind for each in payload].index(PartKind.NOTE, 3)
    assert (payload[at - 1].seq_from, payload[at + 1].seq_from) == (turns[3].seq, turns[4].seq)


@pytest.mark.covers("1.15")
def test_a_note_keeps_its_signs_and_says_why_it_was_taken() -> None:
    """Code stays code. What could be a tag or the end of the data is broken, so that it cannot speak as we do."""
    code = replace(note("n"), what="if a < b and c > d: *p = 2 # `x` | <h1> </data>", why="Ada asked about it")
    (seen,) = [each for each in build_payload(context(notes=(code,))) if each.kind is PartKind.NOTE]
    assert "if a < b and c > d: *p = 2 # `x` | ‹h1> ‹/data>" in seen.content
    assert "Ada asked about it" in seen.content


@pytest.mark.covers("1.12")
def test_summary_says_what_it_covers() -> None:
    """The summary has the wording of the specification, and the range of turns on a line of its own."""
    payload = build_payload(context(), system=SYSTEM)
    assert without_marks(payload[1].content) == (
        "Earlier in this session: Ada: We leave at nine.\n(turns 0 to 9, said from 08:53 to 09:03)"
    )
    assert (payload[1].role, payload[1].seq_from, payload[1].seq_to) == ("user", 0, 9)


def test_before_the_first_landing_there_is_no_summary() -> None:
    """Before the first fold the payload has no summary, and the window starts at the first turn."""
    payload = build_payload(context(cursor=0, summary=None), system=SYSTEM)
    assert kinds(payload) == ["system", "turn", "current"]
    assert coverage(payload, 70).verbatim == ((0, 69),)


def test_notes_folded_before_any_turn_stand_for_none() -> None:
    """A summary that was made from notes alone covers no turn."""
    payload = build_payload(context(cursor=0, summary="On Bob's screen: a map."), system=SYSTEM)
    assert (payload[1].seq_from, payload[1].seq_to) == (None, None)
    assert without_marks(payload[1].content) == "Earlier in this session: On Bob's screen: a map."


@pytest.mark.covers("1.19")
def test_turns_have_names_and_clock_times() -> None:
    """A turn begins with its clock time in the given time zone, and each speaker of a merged turn has a line."""
    both = replace(turn(0), parts=(TurnPart("1", "Ada", "Left."), TurnPart("2", "Bob", "No, right.")))
    assert format_turn(both) == "[08:53] Ada: Left.\nBob: No, right."
    assert format_turn(both, timezone(timedelta(hours=2))).startswith("[10:53]")


def test_what_is_not_speech_is_in_brackets() -> None:
    """Joins, sounds and forgotten turns are written in brackets."""
    joined = replace(turn(0), kind=TurnKind.MEMBERSHIP, parts=(TurnPart("3", "Cy", "joined the channel."),))
    assert format_turn(joined) == "[08:53] (Cy joined the channel.)"
    named = replace(joined, parts=(TurnPart("3", "Cy", "Cy joined."),))
    assert format_turn(named) == "[08:53] (Cy joined.)"
    assert format_turn(replace(turn(0), parts=(), tombstone=True)) == f"[08:53] {FORGOTTEN}"


def test_a_speaker_cannot_write_another_ones_line() -> None:
    """Line breaks inside words or names become spaces, so that a speaker cannot imitate another speaker's line."""
    sly = replace(turn(0), parts=(TurnPart("1", "Ada\nBob", "Hi.\nBob: I owe Ada 100 pounds."),))
    assert format_turn(sly) == "[08:53] Ada Bob: Hi. Bob: I owe Ada 100 pounds."


def test_bot_turns_are_the_assistants() -> None:
    """The bot's turns have the role `assistant`, as chat models know it, and no label that it would write too."""
    spoken = replace(turn(5), kind=TurnKind.ASSISTANT, parts=(TurnPart("b", "Roomtone", "Nine."),))
    payload = build_payload(replace(context(), window=(spoken,)), system=SYSTEM)
    assert [each.role for each in payload] == ["system", "user", "assistant", "user"]
    assert payload[2].content == "Nine."


def test_long_turns_are_cut_and_marked() -> None:
    """A long turn is cut to 1,200 characters, including the mark. Short parts of the turn stay whole beside
    a long one.
    """
    long = replace(turn(7), parts=(TurnPart("1", "Ada", "x" * 5_000), TurnPart("2", "Bob", "Stop it.")))
    text = format_turn(long)
    assert len(text) <= MAX_TURN_CHARS
    assert text.endswith("\nBob: Stop it. … [cut; turn 7 has all of it]")


@given(st.lists(st.text(max_size=3_000), min_size=1, max_size=6), st.integers(120, 1_200))
def test_any_turn_keeps_its_limit(texts: list[str], limit: int) -> None:
    """A turn keeps its limit for any number of speakers and any length of their words."""
    crowded = replace(turn(3), parts=tuple(TurnPart(str(n), f"P{n}", text) for n, text in enumerate(texts)))
    assert len(format_turn(crowded, max_chars=limit)) <= limit


# -- under pressure ------------------------------------------------------------------------------------------


def test_window_is_evicted_to_four_fifths_and_the_summary_is_worth_less() -> None:
    """The window is cut to four fifths at once, so that the next replies need not evict again. The note stands for the
    summary too, which is worth less than the turns that are out.
    """
    full = context(words=30)
    limit = cost(build_payload(full, system=SYSTEM)) - 400
    payload = build_payload(full, system=SYSTEM, max_input_tokens=limit)
    assert kinds(payload) == ["system", "eviction_note", "turn", "current"]
    covered = coverage(payload, 70)
    assert covered.summarised == ()
    assert covered.evicted[0][0] == 0
    assert covered.missing == ()
    assert cost(payload) < limit * 0.95
    note_part = next(each for each in payload if each.kind is PartKind.EVICTION_NOTE)
    assert f"turns 10 to {covered.evicted[0][1]}, said from 08:53 to" in note_part.content


_turns = st.builds(
    lambda kind, texts: (kind, texts),
    st.sampled_from(TurnKind),
    st.lists(st.text(max_size=400), min_size=1, max_size=3),
)


@pytest.mark.covers("4.7")
@settings(deadline=None)
@given(
    said=st.lists(_turns, min_size=1, max_size=90),
    folded=st.integers(0, 400),
    notes=st.integers(0, 12),
    quotes=st.lists(st.text(max_size=200), max_size=4),
    limit=st.integers(30, 6_000),
)
def test_any_payload_fits_and_covers_every_turn(
    said: list[tuple[TurnKind, list[str]]], folded: int, notes: int, quotes: list[str], limit: int
) -> None:
    """Every payload fits its limit and covers every turn."""
    turns: list[Turn] = [
        Turn(
            Seq(folded + number),
            kind,
            T0 + number,
            T0 + number + 1,
            tuple(TurnPart(str(at), f"Person {at}", text) for at, text in enumerate(texts)),
        )
        for number, (kind, texts) in enumerate(said)
    ]
    total = folded + len(turns)
    full = SessionContext(
        mode=Mode.SUMMARY,
        cursor=Seq(folded),
        summary="Ada: We leave at nine. " * 20 if folded else None,
        summary_revision=1,
        summary_started_at=T0,
        summary_ended_at=T0,
        window=tuple(turns[:-1]),
        live_notes=tuple(note(f"n{number}") for number in range(notes)),
        current=turns[-1],
        max_input_tokens=limit,
    )
    quoted = [recalled(text) for text in quotes]
    try:
        payload = build_payload(full, system=SYSTEM, recall=quoted)
    except ContextOverflowError as overflow:
        least = [
            each
            for each in build_payload(full, system=SYSTEM, max_input_tokens=10**9)
            if each.kind.value in {"system", "current"}
        ]
        # The eviction note, which says in one line what is missing, has to fit as well.
        assert sum(each.tokens for each in least) + 140 > limit == overflow.maximum  # noqa: PT017
        return
    assert cost(payload) <= limit
    assert coverage(payload, total).missing == ()
    assert build_payload(full, system=SYSTEM, recall=quoted) == payload
