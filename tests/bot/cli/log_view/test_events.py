"""Formatting a log event as one line without control characters."""

from __future__ import annotations

import json
from datetime import UTC
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.cli.log_view.events import MOST_CHARS, short_line
from bot.logs.reader import parse_event

COMMON = {"timestamp": "2026-11-20T04:11:05.123456Z", "level": "info", "session_id": "evening", "guild_id": 7}
FOLD = "voice_context_compaction_"


@pytest.mark.parametrize(
    ("event", "told"),
    [
        (
            {"event": "turn_recorded", "kind": "speech", "speaker_id": 5, "reason": "not_addressed", "duration_s": 0.5},
            "Ada spoke, not addressed, 0.5 s",
        ),
        ({"event": "turn_recorded", "kind": "assistant", "answer_to": 61}, "the bot answered turn 61"),
        (
            {"event": f"{FOLD}completed", "old_cursor": 0, "covered_through_turn": 9, "latency_ms": 1412.4},
            "folded turns 0 to 9 into ? characters, 1,412 ms",
        ),
        (
            {
                "event": f"{FOLD}failed",
                "level": "warning",
                "cursor": 10,
                "model": "gpt",
                "retryable": True,
                "error_class": "CompletionError",
                "error": "did not answer",
            },
            "warning: folding failed at turn 10, retryable, model gpt: CompletionError: did not answer",
        ),
        (
            {"event": f"{FOLD}failed", "retryable": False},
            "folding failed at turn ?, not retryable, model ?: ?: ?",
        ),
        (
            {"event": f"{FOLD}skipped", "cursor": 3, "reason": "below_threshold", "eligible_count": 0},
            "nothing folded at turn 3: below threshold, 0 of ? turns due",
        ),
        ({"event": "room_crashed", "reason": "no_room", "other": 4}, "room crashed: no_room"),
        ({"event": "process_started"}, "process started"),
        ({"event": "x", "detail": "long" * 40}, "x: " + "long" * 22 + "lo…"),
    ],
)
def test_a_short_line_is_a_sentence(event: dict[str, Any], told: str) -> None:
    """With the time, people's names and what matters, in at most 100 characters."""
    line = short_line({**COMMON, **event}, names={"5": "Ada"}, zone=UTC)
    assert len(line) <= MOST_CHARS
    assert line == f"04:11 {told}"


VALUES = st.none() | st.text(max_size=20) | st.floats() | st.integers() | st.lists(st.text(max_size=5), max_size=2)


@given(st.dictionaries(st.text(max_size=10), VALUES, max_size=4))
def test_no_event_breaks_the_line_or_the_terminal(fields: dict[str, Any]) -> None:
    """Whatever the names and values of the fields are, the line has no control character in it."""
    event = {"event": "x\x1b[31m\n", **{key: value for key, value in fields.items() if key != "event"}}
    assert short_line(event, zone=UTC).isprintable()


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
