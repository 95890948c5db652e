"""Digests: made of what folding stored where possible, and never of confidences or what people say of themselves."""

from __future__ import annotations

import asyncio
import json

import pytest

from compaction.memory.digest import (
    MOST_ABOUT,
    MOST_FACTS,
    STALE_TURNS,
    confided,
    digest_parts,
    make_digest,
    request_for_digest,
)
from compaction.model import (
    Chapter,
    ChapterId,
    Fact,
    FactKind,
    Segment,
    SegmentId,
    Seq,
    SessionId,
    Turn,
    TurnKind,
    TurnPart,
)
from compaction.summary.ledger import SegmentLedger
from compaction.summary.llm import LlmSummariser
from compaction.summary.port import Fold
from tests.compaction.summary.test_paragraph_writer import Says

AT = 1_769_889_600.0
SESSION = SessionId("evening")


def turn(seq: int, speaker: str, text: str, *, kind: TurnKind = TurnKind.SPEECH, at: float | None = None) -> Turn:
    begun = AT + 4.0 * seq if at is None else AT + at
    return Turn(Seq(seq), kind, begun, begun + 2.0, (TurnPart(f"id-{speaker}", speaker, text),))


def fact(seq: int, kind: FactKind, text: str, *, supersedes: tuple[str, ...] = (), importance: int = 2) -> Fact:
    return Fact((Seq(seq),), kind, "Ada", AT + 4.0 * seq, text, supersedes, importance=importance)  # type: ignore[arg-type]


def segment(start: int, end: int, gist: str, *facts: Fact, summariser: str = "llm ledger.v8") -> Segment:
    return Segment(
        SegmentId(f"evening:{start}-{end}"),
        SESSION,
        Seq(start),
        Seq(end),
        AT + 4.0 * start,
        AT + 4.0 * end,
        gist,
        facts,
        (),
        summariser,
    )


def talk(start: int, end: int) -> list[Turn]:
    return [turn(seq, ("Ada", "Bob")[seq % 2], f"Parcel {seq} is in shed {5000 + seq}.") for seq in range(start, end)]


def test_it_is_made_of_what_was_folded() -> None:
    """Gists say what it was about, the facts that hold what was decided and is open, and turns who was there."""
    decided = fact(1, FactKind.DECISION, "We meet on Friday.")
    asked = fact(2, FactKind.OPEN, "Who brings the map?")
    moved = fact(12, FactKind.DECISION, "We meet on Sunday.", supersedes=("evening:0-10#0",))
    own = fact(3, FactKind.LASTING, "I am allergic to nuts.")
    ledger = SegmentLedger(
        [
            segment(0, 10, "They planned a trip.", decided, asked, own),
            segment(10, 20, "They moved the trip. The gate code is 4411.", moved),
        ]
    )
    turns = [*talk(0, 20), turn(20, "Cy", "joined the channel.", kind=TurnKind.MEMBERSHIP)]
    parts = digest_parts(turns, ledger)
    assert (parts.loose, parts.stale) == ((), ())
    digest = make_digest(parts)
    assert [line.text for line in digest.about] == ["They planned a trip.", "They moved the trip."]
    assert [(line.speaker, line.text) for line in digest.decisions] == [("Ada", "We meet on Sunday.")]
    assert [line.text for line in digest.open] == ["Who brings the map?"]
    assert digest.people == ("Ada", "Bob", "Cy")
    assert (digest.turn_count, digest.started_at, digest.ended_at) == (20, AT, AT + 82)


def test_chapters_stand_for_their_segments() -> None:
    """A chapter's gist takes the place of those of its segments; the facts stay."""
    segments = [segment(10 * n, 10 * n + 10, f"Part {n} was told.") for n in range(9)]
    chapter = Chapter(ChapterId("c"), SESSION, 1, Seq(0), Seq(80), AT, AT + 320, "The first part was told.", (), "llm")
    digest = make_digest(digest_parts(talk(0, 90), SegmentLedger(segments, [chapter])))
    assert [line.text for line in digest.about] == ["The first part was told.", "Part 8 was told."]


def test_turns_that_are_not_folded_are_extracted_or_folded_by_a_model() -> None:
    """Few new turns are extracted; of many, a model is given those after the last segment."""
    ledger = SegmentLedger([segment(0, 10, "They planned a trip.", fact(1, FactKind.OPEN, "Who brings the map?"))])
    few = [*talk(0, 10), turn(10, "Bob", "We decided to take the train on Friday.")]
    parts = digest_parts(few, ledger)
    assert parts.stale == ()
    assert [line.text for line in make_digest(parts).decisions] == ["We decided to take the train on Friday."]
    many = [*few, *talk(11, 11 + STALE_TURNS)]
    parts = digest_parts(many, ledger)
    request = request_for_digest(parts)
    assert [each.seq for each in request.turns] == list(range(10, 21))
    assert [each.seq for each in request.before] == list(range(2, 10))
    (known,) = request.known
    assert (known.ref, known.label) == (ledger.known_facts()[0].ref, ""), "the prompt names it by its turn alone"
    told = Fact((Seq(12),), FactKind.DECISION, "Bob", AT, "Bob brings the map.", (known.ref,), quoted=False)
    digest = make_digest(parts, Fold("They settled the map.", (told,)))
    assert [line.text for line in digest.about] == ["They planned a trip.", "They settled the map."]
    assert [(line.speaker, line.text) for line in digest.decisions] == [("", "Bob brings the map.")]
    assert digest.open == ()


def test_a_model_writes_no_summary_for_a_digest() -> None:
    """Nobody reads it, and it is not asked for again when it is missing, while somebody waits for the digest."""
    parts = digest_parts(talk(0, STALE_TURNS), SegmentLedger())
    model = Says(json.dumps({"gist": "They list parcels and sheds.", "facts": []}))
    fold = asyncio.run(LlmSummariser(model, max_output_tokens=700).fold(request_for_digest(parts)))
    assert (fold.gist, len(model.requests)) == ("They list parcels and sheds.", 1)
    assert model.requests[0].schema is not None
    assert "paragraph" not in json.dumps(model.requests[0].schema)


CONFIDENCES = [
    "Between you and me, I am leaving the company.",
    "Don't tell anyone, I failed the exam.",
    "This is off the record.",
    "Keep it to yourself.",
    "I tell you that in confidence.",
    "Das bleibt unter uns, ich kündige.",
    "Sag das bitte niemandem.",
    "Das ist vertraulich.",
    "Behalt das bitte für dich.",
]


@pytest.mark.parametrize("words", CONFIDENCES)
def test_a_confidence_is_in_no_digest(words: str) -> None:
    """Neither what is marked, nor what the same person said just before or after, nor a gist or fact made of it."""
    turns = talk(0, 10)
    turns[4] = turn(4, "Ada", "We decided that I resign in March.")
    turns[6] = turn(6, "Ada", words)
    assert confided(turns) == {0, 2, 4, 6, 8}
    resigned = fact(4, FactKind.DECISION, "We decided that I resign in March.")
    ledger = SegmentLedger([segment(0, 10, "Ada resigns in March.", resigned)])
    digest = make_digest(digest_parts(turns, ledger))
    told = " ".join(line.text for lines in (digest.about, digest.decisions, digest.open) for line in lines)
    assert "March" not in told
    assert words not in told
    assert "5001" in told


def test_plain_talk_is_no_confidence() -> None:
    """Who asks to be told something, or speaks later, has confided nothing."""
    plain = [
        "Tell me what the gate code is.",
        "Sag mir, wann du kommst.",
        "I told her about the map.",
        "Unter dem Tisch.",
    ]
    assert confided([turn(seq, "Ada", text) for seq, text in enumerate(plain)]) == frozenset()
    apart = [turn(0, "Ada", "I like jazz."), turn(1, "Ada", "Don't tell anyone: I hate jazz.", at=300.0)]
    assert confided(apart) == {1}


def test_a_withheld_turn_is_neither_read_nor_counted() -> None:
    """Tombstones take part in nothing."""
    gone = Turn(Seq(1), TurnKind.SPEECH, AT, AT, (), tombstone=True)
    digest = make_digest(digest_parts([turn(0, "Ada", "We decided to meet on Friday."), gone], SegmentLedger()))
    assert (digest.turn_count, digest.people) == (1, ("Ada",))
    assert make_digest(digest_parts([gone], SegmentLedger())).is_empty
    assert make_digest(digest_parts([], SegmentLedger())).is_empty


def test_only_what_people_say_is_quoted() -> None:
    """Neither comings and goings nor the bot's words are a topic, a decision or a question; who came was there."""
    turns = [
        turn(0, "Cy", "Cy joined the channel.", kind=TurnKind.MEMBERSHIP),
        turn(1, "Roomtone", "We decided that the parrot flies to Lisbon.", kind=TurnKind.ASSISTANT),
        turn(2, "Ada", "The boat race was wonderful."),
    ]
    digest = make_digest(digest_parts(turns, SegmentLedger()))
    assert digest.decisions == ()
    assert [line.text for line in digest.about] == ["Ada: The boat race was wonderful."]
    assert (digest.people, [line.text for line in digest.last]) == (("Cy", "Ada"), ["The boat race was wonderful."])


def test_long_last_words_are_cut_between_words() -> None:
    """Of the last turns as many whole words are quoted as fit, and a text without spaces is cut somewhere."""
    turns = [turn(0, "Ada", f"{'walking ' * 24}along the embankment"), turn(1, "Bob", "x" * 300)]
    ada, bob = make_digest(digest_parts(turns, SegmentLedger())).last
    assert ada.text == f"{'walking ' * 24}along …"
    assert bob.text == f"{'x' * 200} …"


def test_it_is_short() -> None:
    """Of a long session the topics are spread over it, and the most important facts are kept in the order of talk."""

    def deal(n: int) -> Fact:
        return fact(10 * n, FactKind.DECISION, f"Deal {n} is on.", importance=3 if n == 2 else 2)

    segments = [segment(10 * n, 10 * n + 10, f"Part {n} was told.", deal(n)) for n in range(30)]
    digest = make_digest(digest_parts(talk(0, 300), SegmentLedger(segments)))
    assert len(digest.about) == MOST_ABOUT
    assert (digest.about[0].text, digest.about[-1].text) == ("Part 0 was told.", "Part 29 was told.")
    assert len(digest.decisions) == MOST_FACTS
    assert digest.decisions[0].text == "Deal 2 is on."
    assert digest.decisions[-1].text == "Deal 29 is on."


def test_without_a_model_a_gist_leaves_out_what_people_say_of_themselves() -> None:
    """An extracted gist quotes the facts, so it is made again without the lasting ones."""
    own, plan = fact(1, FactKind.LASTING, "I am allergic to nuts."), fact(2, FactKind.DOING, "We watch the boat race.")
    ledger = SegmentLedger([segment(0, 10, "Ada: I am allergic to nuts.", own, plan, summariser="extractive")])
    (line,) = make_digest(digest_parts(talk(0, 10), ledger)).about
    assert "nuts" not in line.text
    assert "boat race" in line.text
