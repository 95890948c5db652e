"""Formatting a log event as one aligned line without control characters."""

from __future__ import annotations

import json
import re
from datetime import UTC
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.cli.log_view.events import format_event
from bot.logs.reader import parse_event

COMMON = {
    "timestamp": "2026-11-20T04:11:05.123456Z",
    "level": "info",
    "session_id": "evening",
    "guild_id": 7,
    "compaction_mode": "summary",
}


def line_of(**event: Any) -> str:
    """Return an event as one line of plain text, in UTC."""
    return "".join(text for text, _ in format_event({**COMMON, **event}, zone=UTC))


def test_completed_shows_the_cursor_before_and_after() -> None:
    """A completed compaction shows its cursor, coverage, summary length, notes, time, tokens and what is unsourced."""
    line = line_of(
        event="voice_context_compaction_completed",
        run_id="r1",
        old_cursor=0,
        new_cursor=10,
        covered_through_turn=9,
        summary_chars=1180,
        latency_ms=1412.4,
        prompt_tokens=900,
        completion_tokens=120,
        folded_note_count=1,
        unsourced=2,
    )
    assert line == (
        "11-20 04:11:05.123  info   voice_context_compaction_completed  cursor 0 -> 10  covered through turn 9  "
        "summary 1180 characters  1 note folded  1,412 ms  900 + 120 tokens  2 unsourced  run=r1  "
        "session=evening"
    )


def test_started_shows_what_is_being_folded() -> None:
    """A started compaction shows its batch and its summariser. A run that folds only notes leaves the cursor."""
    fields = {"run_id": "r1", "recent_start": 11, "pending_note_count": 3, "summariser": "llm", "model": "gpt"}
    line = line_of(event="voice_context_compaction_started", cursor=0, batch_size=10, **fields)
    assert "cursor 0 -> 10 to come  turns 0 to 9  recent from turn 11  3 pending notes  by llm (gpt)  run=r1" in line
    line = line_of(event="voice_context_compaction_started", cursor=20, batch_size=0, **fields)
    assert "cursor 20 stays  notes alone" in line


def test_skipped_shows_the_reason_and_how_often() -> None:
    """A check that started no compaction shows the reason and how often it was repeated."""
    line = line_of(
        event="voice_context_compaction_skipped",
        reason="below_threshold",
        cursor=10,
        total_turns=41,
        eligible_count=0,
        threshold=60,
        pending_note_count=2,
        repeated=14,
        run_id=None,
    )
    expected = "cursor 10 stays  below_threshold  41 turns, 0 eligible  due over 60  2 pending notes  14 times more"
    assert expected in line


@pytest.mark.parametrize(("again", "said"), [(4.04, "attempt 2, again in 4.0 s"), (None, "attempt 2, not tried again")])
def test_failed_shows_what_and_when_again(again: float | None, said: str) -> None:
    """A failed compaction shows the error, the unchanged cursor, and when it is tried again."""
    line = line_of(
        event="voice_context_compaction_failed",
        level="warning",
        cursor=10,
        batch_size=10,
        pending_note_count=0,
        model="gpt",
        error_class="CompletionError",
        error="did not answer in time",
        timeout=True,
        retryable=again is not None,
        attempt=2,
        next_retry_s=again,
        latency_ms=30000,
        run_id="r2",
    )
    assert "cursor 10 stays  CompletionError: did not answer in time  gpt" in line
    assert f"timed out  30,000 ms  {said}" in line
    assert ("until it is repaired" in line) == (again is None)
    assert ("  retryable" in line) == (again is not None)


def test_incomplete_compactions_are_still_told() -> None:
    """A compaction event of another version, with other fields, is shown as far as possible."""
    for name in ("completed", "started", "skipped", "failed"):
        assert "cursor" in line_of(event=f"voice_context_compaction_{name}")


def test_other_events_show_their_fields() -> None:
    """Other events show the reason first and the session last, with durations rounded and texts quoted."""
    line = line_of(
        event="utterance_dropped", end_to_text_ms=612.7, speaker_id=5, ratio=0.25, reason="near silence", ok=None
    )
    assert re.split(r"  +", line)[2:] == [
        "utterance_dropped",
        'reason="near silence"',
        "guild_id=7",
        "compaction_mode=summary",
        "end_to_text 613 ms",
        "speaker_id=5",
        "ratio=0.25",
        "ok=None",
        "session=evening",
    ]


def test_names_are_aligned() -> None:
    """Details begin in the same column for every event and level."""
    starts = {
        line_of(event=event, level=level, only=1).index("  guild_id")
        for event in ("a", "voice_context_compaction_other")
        for level in ("info", "warning", "error", "debug")
    }
    assert len(starts) == 1


def test_an_exception_is_one_line() -> None:
    """Only the last line of a traceback is shown; `--json` shows all of it."""
    line = line_of(event="room_crashed", exception='Traceback:\n  File "x"\nRuntimeError: no\n')
    assert "exception=RuntimeError: no" in line
    assert "Traceback" not in line


def test_the_session_is_left_out_when_it_is_the_same_everywhere() -> None:
    """The session can be left out, because with --session it is the same on every line."""
    event = {**COMMON, "event": "x"}
    assert "evening" not in "".join(text for text, _ in format_event(event, zone=UTC, with_session=False))


@pytest.mark.slow
@given(
    st.dictionaries(st.text(), st.recursive(st.none() | st.text() | st.floats() | st.integers(), st.lists), max_size=6)
)
def test_no_event_breaks_the_line_or_the_terminal(fields: dict[str, Any]) -> None:
    """Whatever the names and values of the fields are, the line has no control character in it."""
    event = {"event": "x\x1b[31m\n", **{key: value for key, value in fields.items() if key != "event"}}
    line = "".join(text for text, _ in format_event(event, zone=UTC))
    assert line.isprintable()


def test_rubbish_is_no_event() -> None:
    """Incomplete, binary and foreign lines, and lines without an event name, are not parsed as events."""
    for rubbish in (
        b"",
        b'{"event": "x"',
        b"\x00\x00\x00",
        b"\xff\xfe",
        b"42",
        b"[]",
        b"{}",
        b'{"event": 1}',
        b"[" * 9000,
    ):
        assert parse_event(rubbish) is None


def test_an_event_behind_a_cut_line_is_found() -> None:
    """An event is found behind the rest of a line or zero bytes that a crash left on its line."""
    event = {"timestamp": "t", "event": "process_started"}
    whole = json.dumps(event).encode()
    assert parse_event(b'{"timestamp": "s", "event": "turn_reco' + whole) == (whole.decode(), event)
    assert parse_event(b"\x00" * 512 + whole + b"\r") == (whole.decode(), event)


def test_a_prompt_is_told_with_its_cost_and_what_it_left_out() -> None:
    """A prompt shows its turn, its tokens by part, the turns it has word for word, and those left out."""
    line = line_of(
        event="model_context_built",
        answer_to=61,
        seq_from=10,
        seq_to=61,
        summary_revision=1,
        tokens={"system": 310, "turn": 900},
        total_tokens=1210,
        max_input_tokens=28672,
        evicted=[0, 9],
    )
    assert "for turn 61  1,210 of 28,672 tokens  turns 10 to 61 word for word  summary of revision 1" in line
    assert "system 310, turn 900  left out turns 0 to 9" in line


def test_a_check_of_the_tiers_is_told() -> None:
    """A check of the tiers shows what moved, and the tokens before and after."""
    line = line_of(
        event="tiers_checked",
        segment_count=7,
        total_turns=120,
        context_share=0.72,
        queued=1,
        released=0,
        compressed=3,
        archived=0,
        tokens_before=6200,
        tokens_after=980,
        duration_ms=14.2,
    )
    assert "7 segments at turn 120  context 72 % full  1 queued  3 compressed  6200 -> 980 tokens  14 ms" in line


def test_an_eviction_is_told_with_all_that_went_before() -> None:
    """An eviction shows how many messages left the window, where the window begins now, and the totals so far."""
    line = line_of(
        event="context_rolled", evicted_count=40, evicted_until=120, total_evicted_count=120, total_evicted_tokens=3100
    )
    assert "evicted 40 messages  word for word from turn 120  120 messages so far, 3100 tokens" in line


def test_a_change_of_mode_is_told() -> None:
    """A change of the compaction mode shows the old and the new mode."""
    assert "summary -> rolling" in line_of(event="compaction_mode_changed", old_mode="summary", new_mode="rolling")


def test_a_call_of_a_model_is_told_with_its_cost() -> None:
    """A model call shows billed and counted tokens, its durations, and anything unusual."""
    call = {
        "event": "model_call_finished",
        "purpose": "reply",
        "model": "gpt-4.1-mini",
        "outcome": "answered",
        "estimated_prompt_tokens": 1510,
        "prompt_tokens": 1498,
        "completion_tokens": 42,
        "counted_exactly": True,
        "dropped_count": 0,
        "within_budget": True,
        "first_token_ms": 310.4,
        "duration_ms": 900.0,
    }
    told = "reply answered  1498 + 42 tokens  counted 1510 exactly  first word after 310 ms  900 ms  gpt-4.1-mini"
    assert told in line_of(**call)
    odd = {**call, "prompt_tokens": None, "counted_exactly": False, "dropped_count": 3, "within_budget": False}
    line = line_of(**odd)
    assert "? + 42 tokens  counted 1510 by guess  3 messages left out  over the budget, which is off" in line
    spoken = {name: call[name] for name in ("event", "model", "outcome", "prompt_tokens", "completion_tokens")}
    line = line_of(**spoken, purpose="speech-to-speech", estimated_prompt_tokens=None, duration_ms=900.0)
    assert "speech-to-speech answered  1498 + 42 tokens  900 ms  gpt-4.1-mini" in line
