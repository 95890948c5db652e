"""The dependencies of a run, and the messages for missing ones."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import pytest

from benchmarks.errors import EndpointError
from benchmarks.memory.options import MemoryBenchOptions
from benchmarks.memory.systems import dependencies
from benchmarks.memory.systems.dependencies import find_embedder, find_endpoint, find_pythons
from benchmarks.peers.environment import PeerLibrary
from benchmarks.progress import NoProgress

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def _own_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in an empty directory, so that only the test's settings and models exist."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.asyncio
async def test_missing_model_is_a_remark() -> None:
    """Without a language model, the run gets a remark and goes on with the systems that need none."""
    remarks: list[str] = []
    async with AsyncExitStack() as stack:
        assert await find_endpoint(MemoryBenchOptions(), stack, remarks.append, NoProgress()) is None
        assert await find_endpoint(MemoryBenchOptions(with_model=False), stack, remarks.append, NoProgress()) is None
    assert "roomtone models pull chat" in remarks[0]
    assert "No language model was asked for" in remarks[1]


@pytest.mark.asyncio
async def test_endpoint_that_was_named_must_answer() -> None:
    """An endpoint that the user names must answer, because the user wants it measured."""
    async with AsyncExitStack() as stack:
        with pytest.raises(EndpointError):
            await find_endpoint(MemoryBenchOptions(base_url="http://127.0.0.1:9/v1"), stack, print, NoProgress())


@pytest.mark.slow
@pytest.mark.asyncio
async def test_library_that_cannot_be_installed_is_a_remark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a library cannot be installed, the run gets a remark and the other libraries are measured."""
    requirements = tmp_path / "none.txt"
    requirements.write_text("--no-index\nno-such-package==1.0\n", "utf-8")
    monkeypatch.setattr(dependencies, "MEMORY_PEERS", (PeerLibrary("other", requirements, "other_peer"),))
    remarks: list[str] = []
    async with AsyncExitStack() as stack:
        assert await find_pythons(MemoryBenchOptions(), stack, remarks.append, NoProgress()) == {}
        assert await find_pythons(MemoryBenchOptions(peers=False), stack, remarks.append, NoProgress()) == {}
    assert "other could not be installed" in remarks[0]
    assert remarks[1] == "Other libraries were left out."


@pytest.mark.asyncio
async def test_missing_embedder_is_a_remark() -> None:
    """Without an embedding model, the run gets a remark and only full-text search is measured."""
    remarks: list[str] = []
    async with AsyncExitStack() as stack:
        assert await find_embedder(MemoryBenchOptions(), stack, remarks.append) is None
        assert await find_embedder(MemoryBenchOptions(embeddings=False), stack, remarks.append) is None
    assert "roomtone models pull embed" in remarks[0]
