"""The record of a folded segment has spec 3's fields, derived by rules."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.memory.segment_record import (
    TURN_FRAME_TOKENS,
    RecordMetadata,
    SegmentRecord,
    files_in,
    make_record,
    more_relevant,
    record_json,
)
from compaction.model import Fact, FactKind, Segment, SegmentId, Seq, SessionId
from compaction.summary.port import NOTHING_KEPT
from compaction.tokens import estimate_text_tokens

NOW = 1_760_000_000.0


def fact(seq: int, text: str, kind: FactKind = FactKind.DECISION) -> Fact:
    return Fact((Seq(seq),), text, kind, speaker="Ada", at=NOW)


def segment(*facts: Fact, gist: str = "We take the cabin in Braemar.") -> Segment:
    return Segment(
        SegmentId("evening:0-10"),
        SessionId("evening"),
        Seq(0),
        Seq(10),
        NOW,
        NOW + 60,
        gist,
        facts,
        (),
        "extractive",
        heading="The cabin",
        original_tokens=240,
    )


@pytest.mark.covers("3.7")
def test_a_record_is_read_off_its_segment() -> None:
    """The topic, decisions, files and flags of a record come from the facts, and the ratio from the tokens before and
    after.
    """
    record = make_record(
        segment(
            fact(1, "We take the cabin in Braemar."),
            fact(4, "The build fails in src/auth/oauth2.ts.", FactKind.DOING),
            fact(5, "What about the boat?", FactKind.OPEN),
        ),
        contains_errors=True,
        at=NOW,
    )
    assert record.topic == "The cabin"
    assert (record.start_turn, record.end_turn) == (0, 9)
    assert record.key_decisions == ("We take the cabin in Braemar.",)
    assert record.key_files == ("src/auth/oauth2.ts",)
    assert record.metadata.contains_errors
    assert not record.metadata.contains_code
    assert not record.metadata.task_completed
    assert record.compressed_content == "The build fails in src/auth/oauth2.ts. What about the boat?"
    told = (*record.key_decisions, record.compressed_content, *record.key_files)
    assert record.compressed_tokens == sum(map(estimate_text_tokens, told))
    assert record.original_tokens == 240 + 10 * TURN_FRAME_TOKENS
    assert record.compression_ratio == round(record.original_tokens / record.compressed_tokens, 1)
    assert (record.access_count, record.last_accessed) == (0, NOW)


@pytest.mark.covers("3.7")
def test_record_claims_what_a_model_labelled_and_no_more() -> None:
    """Decisions are facts of that kind that hold; errors are failed tools."""
    made = segment(fact(1, "They rent plan.md's cabin."), fact(2, "It crashed, error!"))
    record = make_record(made, superseded={f"{made.id}#1"}, at=1.0)
    assert (record.key_decisions, record.topic) == (("They rent plan.md's cabin.",), "The cabin")
    assert (record.metadata.contains_errors, record.key_files) == (False, ("plan.md",))
    assert make_record(made, contains_errors=True, at=1.0).metadata.contains_errors
    plain = make_record(segment(fact(1, 'Ada: "We decided, error!"', FactKind.OTHER)), at=1.0)
    assert (plain.key_decisions, plain.metadata.contains_errors) == ((), False)


@pytest.mark.parametrize(
    ("text", "files"),
    [
        ("Look at src/auth/oauth2.ts, docs\\guide.md and a.b.py!", ("src/auth/oauth2.ts", "docs\\guide.md", "a.b.py")),
        ("Version 3.5, e.g. ada@example.md, is in /etc/x.conf.", ()),
        ("In /srv/x.toml. And ./run.sh", ("srv/x.toml", "./run.sh")),
    ],
)
def test_files_are_named_as_they_were_said(text: str, files: tuple[str, ...]) -> None:
    """With their folders, and nothing that only looks like one."""
    assert files_in([text]) == files


@given(st.floats(0.0, 1.0))
def test_relevance_stays_a_share(score: float) -> None:
    """The relevance score grows with each access but stays between 0 and 1."""
    assert score <= more_relevant(score) + 0.001
    assert 0.0 <= more_relevant(score) <= 1.0


EXAMPLE: dict[str, Any] = {
    "segment_id": "seg_42_0",
    "topic": "Implement OAuth2 authentication",
    "session_id": "abc-123-def-456",
    "start_turn": 15,
    "end_turn": 35,
    "original_tokens": 2400,
    "compressed_tokens": 380,
    "compression_ratio": 6.3,
    "compressed_at": "2026-02-16T15:32:00",
    "last_accessed": "2026-02-16T15:32:00",
    "access_count": 0,
    "relevance_score": 0.85,
    "compressed_content": "Implemented OAuth2 authentication system with...",
    "key_decisions": ["Used JWT tokens with 1-hour expiry"],
    "key_files": ["src/auth/oauth2.ts"],
    "metadata": {"contains_code": True, "contains_errors": False, "task_completed": True},
}


def record() -> SegmentRecord:
    """Return the record of the specification's example segment."""
    at = datetime(2026, 2, 16, 15, 32, tzinfo=UTC).timestamp()
    fields = EXAMPLE | {"compressed_at": at, "last_accessed": at}
    metadata = RecordMetadata(contains_code=True, contains_errors=False, task_completed=True)
    lists = {"key_decisions": tuple(EXAMPLE["key_decisions"]), "key_files": tuple(EXAMPLE["key_files"])}
    return SegmentRecord(**fields | lists | {"metadata": metadata})


@pytest.mark.covers("3.6")
def test_a_record_is_written_as_the_specification_shows_it() -> None:
    """Every field of the example is there, in the same order; times say that they are UTC."""
    written = record_json(record())
    assert list(written) == list(EXAMPLE)
    at = "2026-02-16T15:32:00+00:00"
    assert written == EXAMPLE | {"compressed_at": at, "last_accessed": at}


def test_a_record_has_each_fact_once_and_no_secret() -> None:
    """Details are in it only if there is nothing else. Without facts it has the gist."""
    detail = replace(fact(3, "It rains.", FactKind.OTHER), importance=1)
    told = fact(1, "Ada brings the map.", FactKind.DOING), fact(2, "Bob is ill.", FactKind.CONFIDED), detail
    assert make_record(segment(*told), at=NOW).compressed_content == "Ada brings the map."
    assert make_record(segment(*told[1:]), at=NOW).compressed_content == "It rains."
    assert make_record(segment(told[1]), at=NOW).compressed_content == NOTHING_KEPT
    assert make_record(segment(gist="They greet."), at=NOW).compressed_content == "They greet."


def test_a_segment_of_notes_alone_covers_no_turn() -> None:
    """The end turn in its file is one before the start turn."""
    written = record_json(make_record(replace(segment(fact(0, "A map.")), end=Seq(0)), at=NOW))
    assert (written["start_turn"], written["end_turn"]) == (0, -1)
