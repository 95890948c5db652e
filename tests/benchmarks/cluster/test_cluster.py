"""What the cluster's benchmark makes of its figures, and what it needs."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from benchmarks.cluster.bench import cluster_targets, run
from benchmarks.cluster.options import ClusterBenchOptions
from benchmarks.cluster.processes import cpu_s, memory_mb, running
from benchmarks.errors import BenchmarkError
from benchmarks.progress import NoProgress

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(("more_ms", "met"), [(4.2, True), (10.0, True), (10.1, False)])
def test_a_call_may_take_ten_milliseconds_longer(more_ms: float, met: bool) -> None:
    """The median of the pairs decides, and the target names how many there were."""
    [target] = cluster_targets({"a call": {"pairs": 40, "more_ms": {"p50": more_ms, "p95": 80.0}}})
    assert (target.value, target.met, target.sample) == (more_ms, met, "40 pairs")


def test_without_calls_the_target_is_not_measured() -> None:
    """A run that has not come so far claims nothing."""
    [target] = cluster_targets({"cluster": {"ready_s": 12.0}})
    assert target.met is None


def test_what_processes_take_is_read(tmp_path: Path) -> None:
    """CPU time and memory are counted for those whose command line has the words; the ended and odd are left out."""
    ticks = os.sysconf("SC_CLK_TCK")
    for number, command, share in (
        (7, b"ray::ServeReplica:pool:recogniser", 300_000),
        (8, b"python\0-m\0ray", 100_000),
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "cmdline").write_bytes(command + b"\0")
        (folder / "stat").write_text(f"{number} (ray (odd) name) S {'0 ' * 10}{2 * ticks} {ticks} 0 0", "utf-8")
        (folder / "smaps_rollup").write_text(f"00-ff rollup\nRss: 999999 kB\nPss: {share} kB\n", "utf-8")
    (tmp_path / "9").mkdir()
    found = running(tmp_path)
    assert cpu_s(found, "ServeReplica:") == pytest.approx(3.0)
    assert memory_mb(found, "ServeReplica:") == [300.0]
    assert sum(memory_mb(found, "ray")) == pytest.approx(400.0)


@pytest.mark.asyncio
async def test_it_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the tools for a network of its own nothing is started: Ray would listen on every address."""
    monkeypatch.setenv("PATH", "")
    with pytest.raises(BenchmarkError, match="network of its own"):
        await run(ClusterBenchOptions.quick(), NoProgress())
