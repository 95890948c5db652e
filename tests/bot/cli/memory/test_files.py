"""`roomtone memory export`: writing the memory to files."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from bot.memory.admin import MemoryAdmin
from tests.bot.cli.memory.stored_evening import at_evening, told

if TYPE_CHECKING:
    from pathlib import Path

    from bot.memory.admin import SegmentOverview
    from compaction.model import SessionId
    from tests.bot.evening import Evening


def files(folder: Path) -> dict[str, object]:
    """Return the content of every JSON file in a folder, by its relative path."""
    return {
        str(path.relative_to(folder)): json.loads(path.read_text("utf-8")) for path in sorted(folder.rglob("*.json"))
    }


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
