"""Reading the log line of a payload: older versions are read in part, broken lines are refused."""

from __future__ import annotations

from datetime import UTC, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

import pytest

from compaction.context.record import cited_passages, note_ids, read_record
from compaction.memory.passage import PassageKind


@pytest.mark.parametrize(
    "event",
    [
        {},
        {"event": "turn_recorded", "session_id": "e"},
        {"event": "model_context_built"},
        {"event": "model_context_built", "session_id": "e", "tokens": 7, "summary_revision": 1},
        {"event": "model_context_built", "session_id": "e", "tokens": {}, "summary_revision": None},
        {"event": "model_context_built", "session_id": "e", "tokens": {}, "summary_revision": 10**20},
    ],
)
def test_what_is_no_record_is_none(event: dict[str, object]) -> None:
    """Other events and broken lines give no record."""
    assert read_record(event) is None


def test_a_line_of_an_earlier_version_is_read_as_far_as_it_goes() -> None:
    """The line of an earlier version has only ranges and tokens. Its last turn is taken as the answered one."""
    record = read_record(
        {
            "event": "model_context_built",
            "session_id": "e",
            "timestamp": "nonsense",
            "seq_from": 10,
            "seq_to": 61,
            "summary_revision": 1,
            "tokens": {"turn": 5, "current": "?"},
            "evicted": [0, 9],
        }
    )
    assert record is not None
    assert (record.answer_to, record.cursor, record.evicted, record.digest) == (61, 10, (0, 9), None)
    assert (record.tokens, record.total_tokens, record.at) == ({"turn": 5}, 5, 0.0)


@pytest.mark.parametrize("number", [-1, 2**63, 10**40, True, "7", None])
def test_what_no_database_takes_is_no_number_of_a_turn(number: object) -> None:
    """A damaged line may have anything."""
    line = {"event": "model_context_built", "session_id": "e", "tokens": {}, "summary_revision": 0}
    record = read_record({**line, "seq_from": number, "seq_to": number, "answer_to": number, "cursor": number})
    assert record is not None
    assert (record.seq_from, record.seq_to, record.answer_to, record.cursor) == (None,) * 4


BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("written", "zone"),
    [
        ({"utc_offset_s": 7200.0}, BERLIN),
        ({"utc_offset_s": 3600.0}, timezone(timedelta(hours=1))),
        ({}, UTC),
        ({"utc_offset_s": 1e9}, UTC),
        ({"utc_offset_s": 7200.0, "timestamp": "9999-12-31T23:59:59Z"}, UTC),
    ],
)
def test_the_zone_is_the_machines_own_if_it_had_that_offset(written: dict[str, object], zone: tzinfo) -> None:
    """Only it has the times of quotes from another season. A broken offset is none."""
    event = {"event": "model_context_built", "session_id": "e", "tokens": {}, "summary_revision": 1}
    record = read_record({"timestamp": "2026-07-01T18:00:00Z", **event, **written}, BERLIN)
    assert record is not None
    assert record.zone == zone


def test_spoken_lines_say_so_and_what_was_kept_as_sent() -> None:
    """The line of a speech-to-speech session has no current turn among its parts, but it may name the answered turn and
    the parts that were kept as sent.
    """
    line = {
        "event": "model_context_built",
        "session_id": "e",
        "summary_revision": 0,
        "tokens": {"system": 5, "turn": 9},
        "answer_to": 12,
        "as_sent": ["note:00ff", "broken", 7],
        "note_ids": ["a"],
        "recall": ["turn:e#3@0", "nonsense"],
    }
    record = read_record(line)
    assert record is not None
    assert record.spoken
    assert record.texts == (("note", "00ff"),)
    assert note_ids(record) == ("a",)
    assert cited_passages(record.recall) == (("turn:e#3@0", PassageKind.TURN, "e", "3"),)
    written = read_record({**line, "tokens": {"current": 3}})
    assert written is not None
    assert not written.spoken
