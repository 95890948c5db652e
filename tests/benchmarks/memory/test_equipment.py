"""What a run brings along, and what it says where something is missing."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import pytest

from benchmarks.errors import EndpointError
from benchmarks.memory import equipment
from benchmarks.memory.equipment import find_embedder, find_endpoint, find_pythons
from benchmarks.memory.options import Options
from benchmarks.peers.environment import PeerLibrary
from benchmarks.progress import Silence

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def _own_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No settings and no models but the test's."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.asyncio
async def test_missing_model_is_a_remark() -> None:
    """The run goes on with who needs none."""
    remarks: list[str] = []
    async with AsyncExitStack() as stack:
        assert await find_endpoint(Options(), stack, remarks.append, Silence()) is None
        assert await find_endpoint(Options(with_model=False), stack, remarks.append, Silence()) is None
    assert "roomtone models pull chat" in remarks[0]
    assert "No language model was asked for" in remarks[1]


@pytest.mark.asyncio
async def test_endpoint_that_was_named_must_answer() -> None:
    """Whoever names one wants it measured."""
    async with AsyncExitStack() as stack:
        with pytest.raises(EndpointError):
            await find_endpoint(Options(base_url="http://127.0.0.1:9/v1"), stack, print, Silence())


@pytest.mark.asyncio
async def test_library_that_cannot_be_installed_is_a_remark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The others are measured."""
    requirements = tmp_path / "none.txt"
    requirements.write_text("--no-index\nno-such-package==1.0\n", "utf-8")
    monkeypatch.setattr(equipment, "PEERS", (PeerLibrary("other", requirements, "other_peer"),))
    remarks: list[str] = []
    async with AsyncExitStack() as stack:
        assert await find_pythons(Options(), stack, remarks.append, Silence()) == {}
        assert await find_pythons(Options(peers=False), stack, remarks.append, Silence()) == {}
    assert "other could not be installed" in remarks[0]
    assert remarks[1] == "Other libraries were left out."


@pytest.mark.asyncio
async def test_missing_embedder_is_a_remark() -> None:
    """Full text alone is measured then."""
    remarks: list[str] = []
    async with AsyncExitStack() as stack:
        assert await find_embedder(Options(), stack, remarks.append) is None
        assert await find_embedder(Options(embeddings=False), stack, remarks.append) is None
    assert "roomtone models pull embed" in remarks[0]
