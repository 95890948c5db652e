"""The recogniser's benchmark opens the other recognisers with the measured model and says what it left out."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks.asr import bench
from benchmarks.asr.options import AsrBenchOptions
from benchmarks.progress import NoProgress
from config.schema import Settings
from tests.benchmarks.asr.made_up_model import write_model

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from benchmarks.asr.peers import PeerRecogniser

DEFAULTS = ["faster-whisper", "faster-whisper, batched"]


class OpenedPeer:
    """Stands in for a recogniser that runs in a process of its own."""

    version = "1.0"
    settings = "its defaults"

    def __init__(self, name: str) -> None:
        self.name = name


async def _opened(
    model: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, options: AsrBenchOptions | None = None
) -> tuple[list[PeerRecogniser], bench._Measuring]:
    """Return the recognisers that are opened for the model in a folder, and the run."""
    opened: list[PeerRecogniser] = []

    @asynccontextmanager
    async def open_peer(peer: PeerRecogniser, **_: Any) -> AsyncIterator[OpenedPeer]:
        opened.append(peer)
        yield OpenedPeer(peer.name)

    monkeypatch.setattr(bench, "open_peer", open_peer)
    settings = Settings()
    measuring = bench._Measuring(
        options=options or AsrBenchOptions(),
        progress=NoProgress(),
        settings=settings.model_copy(update={"asr": settings.asr.model_copy(update={"model_dir": model})}),
        recordings=(),
    )
    async with AsyncExitStack() as stack:
        await measuring._open_peers(stack, folder)
    return opened, measuring


@pytest.mark.asyncio
async def test_whisper_cpp_is_measured_with_the_converted_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody has to name a file for whisper.cpp. The report says where its weights are from."""
    opened, measuring = await _opened(write_model(tmp_path / "model"), tmp_path, monkeypatch)
    assert [peer.name for peer in opened] == [*DEFAULTS, "whisper.cpp"]
    assert opened[-1].model.read_bytes().startswith(b"lmgg")
    assert list(measuring.peers) == [*DEFAULTS, "whisper.cpp"]
    assert ["int8 ones" in remark for remark in measuring.remarks] == [True]


@pytest.mark.asyncio
async def test_only_the_named_recognisers_are_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without whisper.cpp among the named ones, no model is converted for it."""
    options = AsrBenchOptions(peers=("faster-whisper",))
    opened, measuring = await _opened(tmp_path / "no model", tmp_path, monkeypatch, options)
    assert [peer.name for peer in opened] == ["faster-whisper"]
    assert measuring.remarks == []


@pytest.mark.asyncio
async def test_without_a_convertible_model_the_others_are_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model that cannot be converted leaves whisper.cpp out, with the reason in the report."""
    model = write_model(tmp_path / "model", {})
    opened, measuring = await _opened(model, tmp_path, monkeypatch)
    assert [peer.name for peer in opened] == DEFAULTS
    (remark,) = measuring.remarks
    assert remark.startswith("whisper.cpp was not measured. The model has no ")
