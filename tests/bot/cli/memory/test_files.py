"""`roomtone memory export` and `import`: writing the memory to files and reading it on another machine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.bot.cli.memory.stored_evening import data_dir, told

__all__ = ["data_dir"]


def files(folder: Path) -> dict[str, object]:
    """Return the content of every JSON file in a folder, by its relative path."""
    return {
        str(path.relative_to(folder)): json.loads(path.read_text("utf-8")) for path in sorted(folder.rglob("*.json"))
    }


@pytest.mark.usefixtures("data_dir")
def test_what_is_exported_comes_back_elsewhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Apart from the queue file, an export is the same after an import into the same or another data folder."""
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
    assert "4 known segments" in told(capsys, "memory", "import", "out")
    told(capsys, "memory", "export", "again")
    assert files(tmp_path / "again") == out | {
        "context_queue/evening_pending.json": files(tmp_path / "again")["context_queue/evening_pending.json"]
    }

    monkeypatch.setenv("ROOMTONE_STORAGE__DATA_DIR", str(tmp_path / "elsewhere"))
    assert "Imported: 4 new segments." in told(capsys, "memory", "import", "out", "--guild", "77")
    assert "Imported: 4 known segments." in told(capsys, "memory", "import", "out")
    told(capsys, "memory", "export", "elsewhere-out")
    there = files(tmp_path / "elsewhere-out")
    assert {key: value for key, value in there.items() if "_pending" not in key} == {
        key: value for key, value in out.items() if "_pending" not in key
    }
    queue = there["context_queue/evening_pending.json"]
    assert isinstance(queue, dict)
    assert queue["last_check_turn"] == 100
    assert [each["compressed_at_turn"] for each in queue["compressed"]] == [10, 100, 100, 100]
    assert "Nothing was found." in told(capsys, "memory", "search", "gate code")
    (found,) = json.loads(told(capsys, "memory", "search", "gate code", "--archived", "--json"))
    assert (found["kind"], found["seq_from"], found["seq_to"]) == ("segment", 0, 9)
    assert "4411" in found["text"]


@pytest.mark.usefixtures("data_dir")
def test_what_waits_is_queued_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A queue file can be imported alone if its segments are stored."""
    entry = {
        "segment_id": "evening:0-10",
        "topic": "Lisbon",
        "start_turn": 0,
        "end_turn": 9,
        "message_count": 10,
        "turns_since_mention": 40,
        "queued_at_turn": 90,
        "timestamp": "2026-02-16T15:30:00",
    }
    path = tmp_path / "evening_pending.json"
    path.write_text(json.dumps({"pending": [entry], "compressed": [], "last_check_turn": 90}))
    assert "Imported: 1 queued segment." in told(capsys, "memory", "import", str(path))
    (pending,) = json.loads(told(capsys, "memory", "queue"))["pending"]
    assert pending == entry | {
        "topic": pending["topic"],
        "timestamp": "2026-02-16T15:30:00+00:00",
        "turns_since_mention": pending["turns_since_mention"],
    }
    path.write_text(json.dumps({"pending": [entry | {"segment_id": "no"}], "compressed": [], "last_check_turn": 9}))
    assert "not stored, so not queued: no." in told(capsys, "memory", "import", str(path), status=1)
    path.rename(tmp_path / "morning_pending.json")
    assert "There is no session morning." in told(capsys, "memory", "import", "morning_pending.json", status=1)


@pytest.mark.usefixtures("data_dir")
def test_every_mistake_is_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each faulty file is reported with its mistake, and the other files are imported."""
    told(capsys, "memory", "export", "out")
    folder = tmp_path / "out" / "compressed_context"
    good = json.loads((folder / "evening:10-20.json").read_text("utf-8"))
    (folder / "a.json").write_text("{")
    (folder / "b.json").write_text(json.dumps(good | {"topic": 7}))
    (folder / "c.json").write_text(json.dumps(good | {"segment_id": "evening:500-510"}))
    out = told(capsys, "memory", "import", "out", status=1)
    assert "4 known segments" in out
    assert "a.json: it is not JSON" in out
    assert 'b.json: "topic" in a segment must be some text' in out
    assert "c.json: Session evening has turns of its own and no segment evening:500-510" in out
    assert "There is no nowhere" in told(capsys, "memory", "import", "nowhere", status=1)
    (tmp_path / "empty").mkdir()
    assert "no JSON file" in told(capsys, "memory", "import", "empty", status=1)
    (tmp_path / "file").write_text("")
    assert "cannot be written" in told(capsys, "memory", "export", "file", status=1)


def test_the_specifications_own_segment_can_be_brought(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The segment in the specification can be imported into an empty folder: its session is created and a search finds
    it.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROOMTONE_RECALL__EMBEDDER", "off")
    from tests.compaction.memory.test_export_format import EXAMPLE

    Path("seg_42_0.json").write_text(json.dumps(EXAMPLE))
    assert "Imported: 1 new segment." in told(capsys, "memory", "import", "seg_42_0.json")
    Path("twin.json").write_text(json.dumps(EXAMPLE | {"segment_id": "twin"}))
    assert "has another segment of turns 15 to 35" in told(capsys, "memory", "import", "twin.json", status=1)
    found = json.loads(told(capsys, "memory", "search", "OAuth2 authentication", "--json"))
    assert [each["session"] for each in found] == ["abc-123-def-456"]
    (listed,) = json.loads(told(capsys, "memory", "list", "--json"))
    assert listed["topic"] == "Implement OAuth2 authentication"
    assert listed["access_count"] == 1
