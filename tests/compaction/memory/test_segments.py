"""What is done with folded segments later: tiers, records, forgetting, and facts about people."""

from __future__ import annotations

from dataclasses import replace

import pytest

from compaction.memory.forgetting import forget_in_segments
from compaction.memory.people import ExtractedFacts, extract_person_facts, merge_facts
from compaction.memory.segment_record import make_record
from compaction.memory.tiers import (
    SegmentTopics,
    TieredSegment,
    check_tiers,
    unfolded_tokens,
    with_mentions,
)
from compaction.model import EXTRACTIVE, Fact, FactKind, NoteId, Segment, SegmentId, Seq, SessionId, Turn, TurnKind
from compaction.model import TurnPart as Part
from compaction.summary.folded import known_facts_of
from compaction.summary.port import NOTHING_KEPT

MAX_TOKENS = 1_000


def fact(seq: int, text: str, kind: FactKind = FactKind.OTHER, *closes: str, owner: str = "") -> Fact:
    return Fact((Seq(seq),), text, kind, 2, closes, "Ada", float(seq), owner)


def segment(start: int, *facts: Fact, version: str = "fold.v1") -> Segment:
    return Segment(
        id=SegmentId(f"s{start}"),
        session_id=SessionId("s"),
        start=Seq(start),
        end=Seq(start + 10),
        started_at=float(start),
        ended_at=start + 9.0,
        gist=f"Gist of {start}.",
        facts=facts,
        note_ids=(NoteId(f"n{start}"),),
        prompt_version=version,
        paragraph=f"All until {start + 10}.",
        heading="The cabin",
        original_tokens=300,
    )


def said(seq: int, text: str, who: str = "Ada") -> Turn:
    return Turn(Seq(seq), TurnKind.SPEECH, float(seq), seq + 1.0, (Part(f"id-{who}", who, text),))


def kept(made: Segment, *, messages: int = 10, queued: int | None = None, compressed: bool = False) -> TieredSegment:
    record = make_record(made, at=1.0) if compressed else None
    return TieredSegment(made, messages, made.end - 1, queued_at_turn=queued, record=record)


@pytest.mark.covers("3.1")
@pytest.mark.parametrize(
    ("filled", "each", "moved"),
    [
        (0.6, kept(segment(0)), "nothing"),
        (0.6 + 0.01, kept(segment(0)), "queue"),
        (0.6 + 0.01, kept(segment(0), messages=5 - 1), "nothing"),
        (0.6 + 0.01, kept(segment(70)), "nothing"),
        (0.1, kept(segment(0), queued=60), "compress"),
        (0.1, kept(segment(70), queued=60), "release"),
        (0.8, kept(segment(0), compressed=True), "nothing"),
        (0.8 + 0.01, kept(segment(0), compressed=True), "archive"),
        (0.8 + 0.01, kept(segment(30), compressed=True), "nothing"),
    ],
)
def test_tiers_move_as_spec_3_says(filled: float, each: TieredSegment, moved: str) -> None:
    """Cold means 20 turns without a mention, no open thread and five messages; archived after 50 turns more."""
    done = check_tiers(
        [each],
        SegmentTopics([each.segment]),
        total_turns=80,
        context_tokens=int(filled * MAX_TOKENS),
        max_input_tokens=MAX_TOKENS,
        now=1.0,
    )
    changes = {"queue": done.queue, "release": done.release, "compress": done.compress, "archive": done.archive}
    assert [name for name, ids in changes.items() if ids] == ([] if moved == "nothing" else [moved])


def test_three_hours_at_the_defaults_move_the_tiers() -> None:
    """The prompt itself stays small; what the session would need unfolded fills the room."""
    evening = [segment(start) for start in range(0, 700, 10)]
    assert unfolded_tokens(evening, 4_000) / 28_672 > 0.6
    assert unfolded_tokens(evening[:20], 4_000) / 28_672 < 0.6


@pytest.mark.covers("3.4")
def test_open_thread_keeps_a_segment_warm_until_it_is_closed_or_dropped() -> None:
    """A later fact closes it by its ref."""
    asking = segment(0, fact(1, "Who brings the tent?", FactKind.OPEN))
    assert not SegmentTopics([asking]).threads_closed(asking, turns_since_mention=20)
    assert SegmentTopics([asking]).threads_closed(asking, turns_since_mention=100)
    closing = segment(10, fact(11, "Bob brings the tent.", FactKind.DECISION, "s0#0"))
    assert SegmentTopics([asking, closing]).threads_closed(asking, turns_since_mention=20)


@pytest.mark.covers("3.4")
def test_turn_mentions_segments_by_shared_words_or_a_rare_figure() -> None:
    """What many segments have, the names of those who talk, and who comes or goes mention none."""
    folded = [segment(at * 10, fact(at * 10, f"The harbour boat {at + 4000} sails north {at}.")) for at in range(8)]
    folded.append(segment(80, fact(81, "The cabin in Braemar has a blue stove.")))
    heard = with_mentions(
        map(kept, folded),
        SegmentTopics(folded),
        [
            said(100, "Is the stove in the cabin on?"),
            said(101, "Number 4003!"),
            said(102, "Ada, the harbour boat?"),
            replace(said(103, "The cabin's stove!"), kind=TurnKind.MEMBERSHIP),
            replace(said(104, "The cabin's stove!"), tombstone=True),
        ],
    )
    assert {each.segment.id: each.last_mention for each in heard if each.last_mention >= 100} == {
        "s80": 100,
        "s30": 101,
    }


@pytest.mark.covers("3.7")
def test_record_claims_what_a_model_labelled_and_no_more() -> None:
    """Decisions are facts of that kind that hold; errors are failed tools."""
    made = segment(
        0, fact(1, "They rent plan.md's cabin.", FactKind.DECISION), fact(2, "It crashed, error!", FactKind.DECISION)
    )
    record = make_record(made, superseded={"s0#1"}, at=1.0)
    assert (record.key_decisions, record.topic) == (("They rent plan.md's cabin.",), "The cabin")
    assert (record.metadata.contains_errors, record.key_files) == (False, ("plan.md",))
    assert make_record(made, contains_errors=True, at=1.0).metadata.contains_errors
    quoted = segment(0, fact(1, 'Ada: "We decided, error!"'), version=EXTRACTIVE)
    plain = make_record(quoted, at=1.0)
    assert (plain.key_decisions, plain.metadata.contains_errors) == ((), False)


def test_forgetting_goes_by_turns() -> None:
    """Facts of a forgotten turn go, their numbers stay; gists that cover it go, and so do all later paragraphs, with
    the gists that a model wrote which had read these.
    """
    before = segment(0, fact(3, "Cleo sings."))
    made = segment(10, fact(11, "Ada is ill."), fact(12, "Bob drives."))
    by_code = replace(made, prompt_version=EXTRACTIVE)
    (forgot,) = forget_in_segments([made], {Seq(11)}, set())
    assert [each.text for each in forgot.facts] == ["", "Bob drives."]
    assert (forgot.gist, forgot.paragraph) == ("Bob drives.", "")
    screen = replace(before, facts=(replace(before.facts[0], note_id=NoteId("n0")),))
    for first, seqs, notes in ((before, {Seq(3)}, set[str]()), (screen, set[Seq](), {"n0"})):
        gone, later = forget_in_segments([first, made], seqs, notes)
        assert (gone.gist, gone.paragraph) == (NOTHING_KEPT, "")
        assert (later.facts, later.gist, later.paragraph) == (made.facts, "Ada is ill. Bob drives.", "")
        assert (gone.heading, later.heading) == ("", "Ada is ill")
        _, later = forget_in_segments([first, by_code], seqs, notes)
        assert (later.gist, later.heading, later.paragraph) == (made.gist, "Ada is ill", "")
        _, later = forget_in_segments([replace(first, closing=True), made], seqs, notes)
        assert later == made
    assert forget_in_segments([made], {Seq(20)}, {"n20"}) == [made]


def people_of(*segments: Segment) -> ExtractedFacts:
    known = [each for made in segments for each in known_facts_of(made)]
    return extract_person_facts(
        known,
        [said(each.fact.turn_seq, each.fact.text) for each in known],
        session_id=SessionId("s"),
        superseded={each.ref: each.fact for each in known},
    )


def test_people_say_lasting_things_of_themselves() -> None:
    """Only what a person said of themselves is kept of them."""
    found = people_of(
        segment(
            0,
            fact(1, "Ada is allergic to nuts.", FactKind.LASTING, owner="ada"),
            fact(2, "Bob is ill.", FactKind.LASTING, owner="Bob"),
            fact(3, "They go.", FactKind.DECISION, owner="Ada"),
        )
    )
    assert [(each.person_id, each.text) for each in found.facts] == [("id-Ada", "Ada is allergic to nuts.")]


def test_later_fact_ends_the_one_that_it_closes() -> None:
    """The old one is kept as history."""
    found = people_of(
        segment(0, fact(1, "Ada lives in Oslo.", FactKind.LASTING, owner="Ada")),
        segment(10, fact(11, "Ada lives in Rome.", FactKind.LASTING, "s0#0", owner="Ada")),
    )
    settled = merge_facts(found, ())
    assert [(each.text, each.is_current) for each in settled.added] == [
        ("Ada lives in Oslo.", False),
        ("Ada lives in Rome.", True),
    ]
    assert merge_facts(found, settled.added).added == ()
