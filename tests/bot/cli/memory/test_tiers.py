"""The `roomtone memory` commands about tiers: listing, compressing, archiving and opting out."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from tests.bot.cli.memory.stored_evening import told

if TYPE_CHECKING:
    from pathlib import Path


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


@pytest.mark.usefixtures("data_dir")
def test_a_check_by_hand_tells_what_it_did(capsys: pytest.CaptureFixture[str]) -> None:
    """A context less than 60 % full is compressed only with --regardless, and the tokens before and after
    are printed.
    """
    assert "nothing to do" in told(capsys, "memory", "compress")
    out = told(capsys, "memory", "compress", "--regardless")
    assert re.match(r"Compressed 4 segments: \d+ tokens of turns -> \d+ tokens of records\.", out)
    assert states(capsys) == ["compressed"] * 4
    queue = json.loads(told(capsys, "memory", "queue"))
    assert [each["segment_id"] for each in queue["compressed"]] == [f"evening:{n}-{n + 10}" for n in range(0, 40, 10)]
    assert queue["compressed"][0]["storage_location"] == "compressed_context/evening:0-10.json"
    assert queue["last_check_turn"] == 100


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


@pytest.mark.usefixtures("data_dir")
def test_opting_out_is_told_and_taken_back(capsys: pytest.CaptureFixture[str]) -> None:
    """The tiers of a session or server can be frozen. While they are, `compress` does nothing and says why."""
    assert told(capsys, "memory", "freeze") == "Nothing is frozen.\n"
    assert "Session evening is frozen." in told(capsys, "memory", "freeze", "--session", "even")
    assert "nothing changed" in told(capsys, "memory", "freeze", "--session", "even")
    assert "are frozen" in told(capsys, "memory", "compress", status=1)
    assert "Server 77 is frozen" in told(capsys, "memory", "freeze", "--guild", "77")
    assert told(capsys, "memory", "freeze") == "guild 77\nsession evening\n"
    told(capsys, "memory", "unfreeze", "--guild", "77", "--session", "evening")
    assert "nothing to do" in told(capsys, "memory", "compress")


@pytest.mark.parametrize(
    "words",
    [["list"], ["search", "x"], ["export", "out"]],
)
def test_without_a_memory_there_is_a_sentence(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a stored memory, each command prints a message and creates no database."""
    monkeypatch.chdir(tmp_path)
    assert "There is no memory yet" in told(capsys, "memory", *words, status=1)
    assert not list(tmp_path.rglob("*.db"))
