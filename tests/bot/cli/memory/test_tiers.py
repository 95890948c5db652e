"""The `roomtone memory` commands about tiers: listing, compressing, archiving, opting out and export."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from bot.memory.admin import MemoryAdmin, SegmentOverview
from compaction.model import SessionId
from tests.bot.cli.memory.stored_evening import at_evening, told
from tests.bot.evening import Evening


def states(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Return the state of each segment."""
    return [each["state"] for each in json.loads(told(capsys, "memory", "list", "evening", "--json"))]


@pytest.mark.usefixtures("data_dir")
def test_segments_are_listed_with_how_they_are_kept(capsys: pytest.CaptureFixture[str]) -> None:
    """A list shows each segment's turns and tier; as JSON it has the fields of spec 3."""
    out = told(capsys, "memory", "list")
    assert "Session evening: 100 turns, 4 segments, last checked at turn 100" in out
    assert "0-9" in out
    assert "warm" in out
    (first, *_) = json.loads(told(capsys, "memory", "list", "even", "--json"))
    assert first["segment_id"] == "evening:0-10"
    assert (first["start_turn"], first["end_turn"], first["state"]) == (0, 9, "warm")
    assert first["original_tokens"] > first["compressed_tokens"] > 0


@pytest.mark.covers("3.11")
@pytest.mark.usefixtures("data_dir")
def test_a_check_by_hand_tells_what_it_did(capsys: pytest.CaptureFixture[str]) -> None:
    """A context less than 60 % full is compressed only with --regardless, and the tokens before and after
    are printed.
    """
    assert "nothing to do" in told(capsys, "memory", "compress")
    out = told(capsys, "memory", "compress", "--regardless")
    assert re.match(r"Compressed 4 segments: [\d,]+ tokens of turns -> \d+ tokens of records\.", out)
    assert states(capsys) == ["compressed"] * 4
    queue = json.loads(told(capsys, "memory", "queue"))
    assert [each["segment_id"] for each in queue["compressed"]] == [f"evening:{n}-{n + 10}" for n in range(0, 40, 10)]
    assert queue["compressed"][0]["storage_location"] == "compressed_context/evening:0-10.json"
    assert queue["last_check_turn"] == 100


@pytest.mark.covers("3.11")
@pytest.mark.usefixtures("data_dir")
def test_the_archive_is_filled_and_cleared(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """`archive` moves the named segments or all compressed ones, and `--clear` prunes the archive."""
    monkeypatch.setenv("ROOMTONE_TIERS__RETENTION_DAYS", "0")
    assert "no segment of the session is compressed" in told(capsys, "memory", "archive")
    assert "Archived 1 segment: turns 0-9." in told(capsys, "memory", "archive", "--segment", "0-9")
    assert "No segment 0-9 can be archived" in told(capsys, "memory", "archive", "--segment", "0-9", status=1)
    told(capsys, "memory", "compress", "--regardless")
    assert "Archived 3 segments" in told(capsys, "memory", "archive")
    found = json.loads(told(capsys, "memory", "search", "gate code", "--json"))
    assert {each["kind"] for each in found} == {"turn"}
    assert told(capsys, "memory", "prune", "--yes").endswith("\nNothing was old enough.\n")
    assert "Cleared: 4 archived segments" in told(capsys, "memory", "archive", "--clear", "--yes")
    assert states(capsys) == ["pruned"] * 4


@pytest.mark.covers("3.11")
@pytest.mark.usefixtures("data_dir")
def test_opting_out_is_told_and_taken_back(capsys: pytest.CaptureFixture[str]) -> None:
    """The tiers of a session or server can be frozen. While they are, `compress` does nothing and says why."""
    assert told(capsys, "memory", "freeze") == "Nothing is frozen.\n"
    assert "Session evening is frozen." in told(capsys, "memory", "freeze", "--session", "even")
    assert "nothing changed" in told(capsys, "memory", "freeze", "--session", "even")
    assert "are frozen" in told(capsys, "memory", "compress", status=1)
    assert "Server 77 is frozen" in told(capsys, "memory", "freeze", "--server", "77")
    assert told(capsys, "memory", "freeze") == "Server 77\nSession evening\n"
    told(capsys, "memory", "unfreeze", "--server", "77", "--session", "evening")
    assert "nothing to do" in told(capsys, "memory", "compress")


@pytest.mark.usefixtures("in_tmp_path")
@pytest.mark.parametrize(
    "words",
    [["list"], ["search", "x"], ["export", "out"]],
)
def test_without_a_memory_there_is_a_sentence(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a stored memory, each command prints a message and creates no database."""
    assert "There is no memory yet" in told(capsys, "memory", *words, status=1)
    assert not list(tmp_path.rglob("*.db"))


def files(folder: Path) -> dict[str, object]:
    """Return the content of every JSON file in a folder, by its relative path."""
    return {
        str(path.relative_to(folder)): json.loads(path.read_text("utf-8")) for path in sorted(folder.rglob("*.json"))
    }


@pytest.mark.covers("3.6")
@pytest.mark.usefixtures("data_dir")
def test_segments_and_the_queue_are_written_to_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each segment has a file, an archived one in its session's folder; a folder that cannot be made is a sentence."""
    told(capsys, "memory", "archive", "--segment", "0-9")
    told(capsys, "memory", "compress", "--regardless")
    assert "Wrote 4 segments of 1 session " in told(capsys, "memory", "export", "out")
    out = files(tmp_path / "out")
    assert list(out) == [
        "compressed_context/evening:10-20.json",
        "compressed_context/evening:20-30.json",
        "compressed_context/evening:30-40.json",
        "context_queue/evening_pending.json",
        "sessions/evening/archived_context/evening:0-10.json",
    ]
    queue = out["context_queue/evening_pending.json"]
    assert isinstance(queue, dict)
    assert {each["compressed_at_turn"] for each in queue["compressed"]} == {100}
    (tmp_path / "file").write_text("")
    assert "cannot be written" in told(capsys, "memory", "export", "file", status=1)


def test_sessions_are_exported_one_at_a_time(
    data_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files of one session are written before the next one is read: a memory of years fits into no process."""

    async def fill(evening: Evening) -> None:
        await evening.talk(61)

    at_evening(data_dir, fill, name="later")
    written: list[int] = []
    overview = MemoryAdmin.overview

    async def counted(admin: MemoryAdmin, session_id: SessionId) -> SegmentOverview:
        written.append(len(files(tmp_path / "out")))
        return await overview(admin, session_id)

    monkeypatch.setattr(MemoryAdmin, "overview", counted)
    assert "Wrote 5 segments of 2 sessions " in told(capsys, "memory", "export", "out")
    assert written == [0, 5]
