"""Other recognisers, each in a process of its own, so that their threads and caches do not count as ours."""

from __future__ import annotations

import sys
import wave
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.asr.ggml_model import keep_ggml_model
from benchmarks.asr.ours import MeasuredText
from benchmarks.child_process import PEER_ERRORS, child_process
from benchmarks.peers.environment import FOLDER, PeerLibrary, peer_python
from voice.audio import LISTEN_RATE_HZ

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from benchmarks.child_process import ChildProcess
    from benchmarks.progress import Progress
    from voice.audio import Pcm

PROGRAM = Path(__file__).with_name("transcriber_process.py")
WHISPER_CPP = PeerLibrary("pywhispercpp", FOLDER / "pywhispercpp.txt", "")


@dataclass(frozen=True, slots=True)
class PeerRecogniser:
    """One recogniser to compare with.

    `model`: its model's folder or file. `library`: None runs in our environment. `remark`: a sentence for the report.
    """

    name: str
    model: Path
    library: PeerLibrary | None = None
    remark: str = ""


def whisper_cpp(model_dir: Path, *, ggml: Path | None, keep_in: Path) -> PeerRecogniser:
    """Return whisper.cpp with the file `ggml`, or else with the model in `model_dir`, converted and kept in `keep_in`.

    Reads and writes the whole model. Raises ModelFormatError.
    """
    if ggml is not None:
        return PeerRecogniser("whisper.cpp", ggml, WHISPER_CPP, f"whisper.cpp ran a model of its own, {ggml.name}.")
    converted = keep_ggml_model(model_dir, keep_in)
    remark = (
        "whisper.cpp computed in float16 with the same weights, converted into its own format from the model's "
        f"{converted.stored_as} ones."
    )
    return PeerRecogniser("whisper.cpp", converted.file, WHISPER_CPP, remark)


class PeerTranscriber:
    """A running recogniser. Created by `open_peer`."""

    def __init__(self, name: str, child: ChildProcess, folder: Path) -> None:
        self.name = name
        self.version = ""
        self.settings = ""
        self._child = child
        self._file = folder / f"{name.replace(' ', '-')}.wav"

    async def open(self, model: Path, *, language: str, threads: int) -> None:
        """Load its model. Raises PeerError."""
        answer = await self._child.ask("open", model=str(model), language=language, threads=threads)
        self.version, self.settings = str(answer["version"]), str(answer["settings"])

    async def transcribe(self, pcm: Pcm) -> MeasuredText:
        """Return the text of a sound (mono int16, 16 kHz). Raises PeerError."""
        with wave.open(str(self._file), "wb") as writer:
            writer.setnchannels(1)
            writer.setsampwidth(2)
            writer.setframerate(LISTEN_RATE_HZ)
            writer.writeframes(pcm.astype("<i2").tobytes())
        answer = await self._child.ask("transcribe", file=str(self._file))
        return MeasuredText(str(answer["text"]), float(answer["cpu_s"]), float(answer["wall_s"]))


@asynccontextmanager
async def open_peer(
    peer: PeerRecogniser, *, folder: Path, peers_dir: Path, language: str, threads: int, progress: Progress
) -> AsyncIterator[PeerTranscriber]:
    """Run another recogniser. `folder`: for the sounds that it gets. Raises PeerError if it does not start."""
    library = peer.library
    python = sys.executable if library is None else str(await peer_python(library, peers_dir, progress))
    # As in our own process: without OMP_NUM_THREADS, numpy's threads spin beside the model's.
    alone = {"OMP_NUM_THREADS": "1"}
    async with child_process(peer.name, (python, str(PROGRAM), peer.name), env=alone, errors=PEER_ERRORS) as child:
        transcriber = PeerTranscriber(peer.name, child, folder)
        await transcriber.open(peer.model, language=language, threads=threads)
        yield transcriber
