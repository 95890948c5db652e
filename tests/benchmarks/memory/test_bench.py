"""A small run of the whole memory benchmark."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
import structlog

from benchmarks.errors import BenchmarkError
from benchmarks.memory import bench
from benchmarks.memory.measurements import barge_in, reply_path
from benchmarks.memory.options import MemoryBenchOptions
from benchmarks.progress import NoProgress

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.report import BenchmarkReport

SMALL = MemoryBenchOptions(
    folds=2,
    evenings=1,
    turns=60,
    search_turns=60,
    with_model=False,
    peers=False,
    embeddings=False,
    only=("extractive",),
    # The case tables are 84 conversations.
    parts=("speed", "search", "barge_in", "facts"),
)


@pytest.fixture(autouse=True)
def _quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a run take seconds, in a directory without settings."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(bench, "_BARGE_IN_TURNS", 62)
    monkeypatch.setattr(barge_in, "TURN_S", 0.001)
    monkeypatch.setattr(barge_in, "SUMMARY_S", 0.002)
    monkeypatch.setattr(reply_path, "_REPLIES", 12)


@pytest.mark.slow
@pytest.mark.asyncio
async def test_only_who_is_named_is_heard_and_parts_come_as_they_are_done() -> None:
    """Only the named system runs. Each part is reported as unfinished when it is done, so a run that breaks off leaves
    results.
    """
    parts: list[BenchmarkReport] = []
    before = structlog.get_config()
    report = await bench.run(SMALL, NoProgress(), on_part=parts.append)
    assert "extractive" in report.ours
    assert "last 50 turns" not in report.peers
    assert len(parts) == 3
    assert "not finished" in parts[0].remarks[-1]
    assert not any("not finished" in remark for remark in report.remarks)
    assert structlog.get_config() == before


@pytest.mark.asyncio
async def test_name_that_nobody_has_is_told() -> None:
    """An unknown name raises an error with the names that this run has."""
    with pytest.raises(BenchmarkError, match=r"Nobody here is called ledger\. .*extractive"):
        await bench.run(replace(SMALL, only=("ledger",)), NoProgress())
