"""Other recognisers run in processes of their own, and their failures are plain sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks.asr.peers import WHISPER_CPP, PeerRecogniser, open_peer, whisper_cpp
from benchmarks.errors import PeerError
from benchmarks.progress import NoProgress
from tests.benchmarks.asr.made_up_model import write_model
from tests.voice.recordings import bicycle

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.slow
@pytest.mark.asyncio
@pytest.mark.parametrize("name", ["faster-whisper", "faster-whisper, batched"])
async def test_a_peer_recognises_and_names_its_version(name: str, tmp_path: Path, whisper_model_dir: Path) -> None:
    """The peer returns the text with its CPU time, and the report gets its version and settings."""
    peer = PeerRecogniser(name, whisper_model_dir)
    async with open_peer(
        peer, folder=tmp_path, peers_dir=tmp_path, language="en", threads=1, progress=NoProgress()
    ) as transcriber:
        heard = await transcriber.transcribe(bicycle())
    assert "green bicycle" in heard.text
    assert heard.cpu_s > 0
    assert transcriber.version.startswith("faster-whisper 1.")
    assert "the language given" in transcriber.settings


@pytest.mark.slow
@pytest.mark.asyncio
async def test_a_peer_that_dies_is_a_plain_sentence(tmp_path: Path, whisper_model_dir: Path) -> None:
    """A recogniser whose process ends in the middle is told as such, so that the benchmark can go on without it."""
    peer = PeerRecogniser("faster-whisper", whisper_model_dir)
    async with open_peer(
        peer, folder=tmp_path, peers_dir=tmp_path, language="en", threads=1, progress=NoProgress()
    ) as transcriber:
        transcriber._child._process.kill()
        await transcriber._child._process.wait()
        with pytest.raises(PeerError, match="faster-whisper stopped answering"):
            await transcriber.transcribe(bicycle())


@pytest.mark.slow
@pytest.mark.asyncio
async def test_a_peer_without_its_model_is_a_plain_sentence(tmp_path: Path) -> None:
    """A model that cannot be read ends the peer with its reason; nothing of it goes on running."""
    peer = PeerRecogniser("faster-whisper", tmp_path / "nowhere")
    with pytest.raises(PeerError, match="faster-whisper failed: "):
        async with open_peer(
            peer, folder=tmp_path, peers_dir=tmp_path, language="en", threads=1, progress=NoProgress()
        ):
            pytest.fail("it cannot be opened")


def test_whisper_cpp_gets_the_measured_model_in_its_own_format(tmp_path: Path) -> None:
    """Without another file the model is converted into the folder of the other libraries, and the report says so."""
    peer = whisper_cpp(write_model(tmp_path / "model"), ggml=None, keep_in=tmp_path / "peers")
    assert peer.library == WHISPER_CPP
    assert list((tmp_path / "peers").iterdir()) == [peer.model]
    assert "the same weights, converted into its own format from the model's int8 ones" in peer.remark


def test_whisper_cpp_may_have_another_model(tmp_path: Path) -> None:
    """With a file of its own nothing is converted, and the report names the file without its folder."""
    peer = whisper_cpp(tmp_path / "nowhere", ggml=tmp_path / "large.bin", keep_in=tmp_path / "peers")
    assert (peer.name, peer.model) == ("whisper.cpp", tmp_path / "large.bin")
    assert peer.remark == "whisper.cpp ran a model of its own, large.bin."
    assert not (tmp_path / "peers").exists()
