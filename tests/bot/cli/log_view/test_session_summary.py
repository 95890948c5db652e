"""The summary of a session's memory, made from its log lines alone."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

from bot.cli.log_view.event_filter import EventFilter
from bot.cli.log_view.events import COMPACTION
from bot.cli.log_view.session_summary import SessionSummaries
from bot.cli.log_view.tail import JsonPrinter, LogTail, patterns_of

if TYPE_CHECKING:
    from pathlib import Path


def told(*events: dict[str, Any]) -> list[str]:
    """Return the summary sentences for these events of one session."""
    story = SessionSummaries()
    for event in events:
        story.add({"session_id": "evening", **event})
    return story.sentences()


def landed(old: int, new: int, **fields: Any) -> dict[str, Any]:
    return {"event": COMPACTION + "completed", "old_cursor": old, "new_cursor": new, "latency_ms": 1200.0, **fields}


def test_an_evening_is_told_in_one_line() -> None:
    """The summary of an evening has its folds, failures, largest prompt and end in one line."""
    (line,) = told(
        landed(0, 10, folded_note_count=2),
        {"event": COMPACTION + "failed", "error_class": "CompletionError"},
        {"event": COMPACTION + "skipped", "reason": "backing_off", "repeated": 0},
        {"event": COMPACTION + "skipped", "reason": "backing_off", "repeated": 4},
        landed(10, 20, unsourced=3, latency_ms=8400.0),
        {"event": "model_context_built", "total_tokens": 900, "max_input_tokens": 1000, "evicted": [0, 9]},
        {"event": "model_context_built", "total_tokens": 500, "max_input_tokens": 1000, "evicted": None},
        {"event": "session_ended"},
        {"event": "turn_recorded"},
    )
    assert line == (
        "evening: 2 folds, cursor 0 -> 20; the slowest took 8.4 s; 2 notes folded; 3 unsourced figures and names; "
        "1 failure (1 CompletionError); waited 5 times after failures; "
        "2 prompts built, the fullest at 90 % of the room; 1 prompt had turns left out; it has ended."
    )


def test_missing_lines_are_noticed() -> None:
    """If a fold does not begin at the cursor of the previous one, the summary says that lines are missing."""
    (line,) = told(landed(0, 10), landed(30, 40))
    assert "lines are missing in 1 place" in line
    assert line.endswith("it has not ended.")


def test_events_without_a_session_or_a_memory_are_no_story() -> None:
    """Events without a session or about other things are ignored; wrong field values raise no error."""
    story = SessionSummaries()
    story.add({"event": "discord_connected"})
    story.add({"event": "turn_recorded", "session_id": "evening"})
    assert story.sentences() == []
    (line,) = told(landed(None, "x", latency_ms="?", folded_note_count=None), {"event": "model_context_built"})  # type: ignore[arg-type]
    assert "1 fold, cursor None -> None" in line


def test_tail_ends_with_the_story_of_what_is_wanted(tmp_path: Path) -> None:
    """The summary of the selected session follows its events."""
    log = tmp_path / "a.jsonl"
    lines = [{"session_id": name, **landed(0, 10)} for name in ("evening", "morning")]
    log.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    out, notices = io.StringIO(), io.StringIO()
    wanted = EventFilter(session="even", patterns=patterns_of(["memory"]))
    LogTail(log, wanted, JsonPrinter(out), notices=notices, story=SessionSummaries()).run(follow=False, last=None)
    assert len(out.getvalue().splitlines()) == 1
    assert notices.getvalue().startswith("evening: 1 fold, cursor 0 -> 10;")
    assert "morning" not in notices.getvalue()
