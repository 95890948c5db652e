"""What people read of a session: what a model labelled, and without a model what is certain."""

from __future__ import annotations

from dataclasses import replace

import pytest

from compaction.memory.digest import STALE_TURNS, DigestPerson, digest_parts, make_digest, request_for_digest
from compaction.model import EXTRACTIVE, Fact, FactKind, NoteId, Segment, SegmentId, Seq, SessionId, Turn, TurnKind
from compaction.model import TurnPart as Part
from compaction.summary.port import Fold


def turn(seq: int, who: str = "Ada", kind: TurnKind = TurnKind.SPEECH) -> Turn:
    return Turn(Seq(seq), kind, seq * 10.0, seq * 10.0 + 5, (Part(who, who, f"Word {seq}.", 3.0),))


def segment(start: int, *facts: Fact, version: str = "fold.v1") -> Segment:
    return Segment(
        SegmentId(f"s{start}"),
        SessionId("s"),
        Seq(start),
        Seq(start + 10),
        start * 10.0,
        start * 10.0 + 99,
        f"Gist of {start}.",
        facts,
        (),
        version,
    )


def fact(seq: int, text: str, kind: FactKind, *closes: str, owner: str = "", until: str = "") -> Fact:
    return Fact((Seq(seq),), text, kind, 2, closes, "Ada", seq * 10.0, owner, until)


TURNS = [turn(seq, "Ada" if seq % 2 else "Bob") for seq in range(20)]


def test_facts_are_told_by_kind_with_their_turn_and_who_has_to_do_them() -> None:
    """What is closed, lasting or seen on a screen is not told."""
    segments = [
        segment(
            0,
            fact(1, "They rent the cabin.", FactKind.DECISION),
            fact(2, "Who drives?", FactKind.OPEN),
            fact(3, "Ada is ill.", FactKind.LASTING),
            Fact((Seq(4),), "A map.", FactKind.OPEN, note_id=NoteId("n")),
        ),
        segment(
            10,
            fact(11, "Bob drives.", FactKind.DECISION, "s0#1"),
            fact(12, "The tent is to be mended.", FactKind.OPEN, owner="Bob", until="Friday"),
        ),
    ]
    digest = make_digest(digest_parts(TURNS, segments))
    assert [(line.text, line.seq) for line in digest.decisions] == [("They rent the cabin.", 1), ("Bob drives.", 11)]
    assert [line.text for line in digest.to_do] == ["The tent is to be mended. (Bob, Friday)"]
    assert digest.open == ()
    assert [(line.text, line.seq) for line in digest.about] == [("Gist of 10.", 0)]
    assert digest.people == (DigestPerson("Bob", 30.0), DigestPerson("Ada", 30.0))
    assert [line.text for line in digest.last] == ["Word 17.", "Word 18.", "Word 19."]


@pytest.mark.parametrize(
    ("reader", "yours", "decisions", "to_do", "open_questions"),
    [
        ("", [], ["They rent Bo's cabin."], ["Cy drives. (Bob)"], ["Does bob bring the tent?"]),
        ("Bob", ["Cy drives. (Bob)", "Does bob bring the tent?"], ["They rent Bo's cabin."], [], []),
        ("Bo", ["They rent Bo's cabin."], [], ["Cy drives. (Bob)"], ["Does bob bring the tent?"]),
        ("Ada", [], ["They rent Bo's cabin."], ["Cy drives. (Bob)"], ["Does bob bring the tent?"]),
    ],
)
def test_what_concerns_the_reader_stands_by_itself(
    reader: str, yours: list[str], decisions: list[str], to_do: list[str], open_questions: list[str]
) -> None:
    """What is theirs or names them, and nowhere else."""
    facts = (
        fact(1, "They rent Bo's cabin.", FactKind.DECISION),
        fact(2, "Cy drives.", FactKind.DECISION, owner="Bob"),
        fact(3, "Does bob bring the tent?", FactKind.OPEN),
        fact(4, "Bob and Bo are brothers.", FactKind.LASTING),
    )
    digest = make_digest(digest_parts(TURNS, [segment(0, *facts)]), reader=reader)
    told = [[line.text for line in lines] for lines in (digest.yours, digest.decisions, digest.to_do, digest.open)]
    assert told == [yours, decisions, to_do, open_questions]


def test_without_a_model_there_are_no_guesses() -> None:
    """Who was there, when, and what was said last."""
    digest = make_digest(digest_parts(TURNS, [segment(0, fact(1, "x", FactKind.DECISION), version=EXTRACTIVE)]))
    assert digest.is_certain
    assert (digest.turn_count, digest.started_at, digest.ended_at, len(digest.last)) == (20, 0.0, 195.0, 3)


def test_what_is_said_to_the_bot_is_not_among_the_last_words() -> None:
    """Nor what is typed to it; people spoke all the same."""
    with_bot = [replace(turn(20), called=True), turn(21, kind=TurnKind.ASSISTANT), turn(22, kind=TurnKind.TYPED)]
    digest = make_digest(digest_parts([*TURNS, *with_bot], []))
    assert [line.text for line in digest.last] == ["Word 17.", "Word 18.", "Word 19."]
    assert digest.turn_count == 22


def test_who_was_away_is_quoted_only_what_a_model_has_read() -> None:
    """It may have been told in confidence. So a model is asked for the last word, too."""
    parts = digest_parts(TURNS[:11], [segment(0)], needs_model=True)
    assert [turn.seq for turn in parts.stale] == [10]
    for fold, last in ((None, 9), (Fold("They go.", (), "P.", "fold.v1"), 10)):
        assert make_digest(parts, fold).last[-1].seq == last


def test_two_who_speak_at_once_have_spoken_twice() -> None:
    """What overlaps is one turn."""
    at_once = replace(TURNS[0], parts=(*TURNS[0].parts, *TURNS[1].parts))
    assert make_digest(digest_parts([at_once], [])).turn_count == 2


@pytest.mark.parametrize(("folded", "stale"), [(1, STALE_TURNS), (2, 0)])
def test_model_is_asked_for_what_is_not_folded(folded: int, stale: int) -> None:
    """Its facts are told with the others, and close them."""
    parts = digest_parts(TURNS, [segment(0, fact(2, "Who drives?", FactKind.OPEN)), segment(10)][:folded])
    assert len(parts.stale) == stale
    if stale:
        request = request_for_digest(parts)
        assert (request.start, len(request.turns), [each.ref for each in request.known]) == (10, 10, ["s0#0"])
        closing = fact(15, "Ada drives.", FactKind.DECISION, "s0#0")
        digest = make_digest(parts, Fold("They go.", (closing,), "P.", "fold.v1"))
        assert (digest.open, [line.text for line in digest.decisions]) == ((), ["Ada drives."])
        assert digest.about[-1].text.endswith("They go.")


def test_nothing_that_may_be_told_is_an_empty_digest() -> None:
    """All turns of the stretch are withheld."""
    gone = [Turn(each.seq, each.kind, 0.0, 1.0, (), tombstone=True) for each in TURNS]
    assert make_digest(digest_parts(gone, [segment(0, fact(1, "x", FactKind.DECISION))])).is_empty
    assert make_digest(digest_parts([], [])).is_empty


def test_a_confidence_is_in_no_digest() -> None:
    """Neither its fact, nor its turn and what else was made of it, nor a gist that may tell of it."""
    hers = segment(0, fact(1, "They rent the cabin.", FactKind.DECISION))
    his = segment(10, fact(18, "Bob resigns.", FactKind.CONFIDED), fact(18, "Bob leaves in May.", FactKind.DECISION))
    digest = make_digest(digest_parts(TURNS, [hers, his]))
    assert [line.text for line in digest.decisions] == ["They rent the cabin."]
    assert [line.text for line in digest.about] == ["Gist of 0."]
    assert [line.text for line in digest.last] == ["Word 16.", "Word 17.", "Word 19."]
    told = make_digest(digest_parts(TURNS, [hers]), Fold("He resigns.", his.facts, "P.", "fold.v1"))
    assert (told.about, told.decisions, told.last) == (digest.about, digest.decisions, digest.last)
