"""Other recognisers, each in a process of its own, so that their threads and caches do not count as ours."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import wave
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.asr.ours import MeasuredText
from benchmarks.errors import PeerError
from benchmarks.peers.environment import FOLDER, PeerLibrary, peer_python
from voice.audio import LISTEN_RATE_HZ

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from benchmarks.progress import Progress
    from voice.audio import Pcm

PROGRAM = Path(__file__).with_name("transcriber_process.py")
WHISPER_CPP = PeerLibrary("pywhispercpp", FOLDER / "pywhispercpp.txt", "")
# Half a minute of speech by a slow recogniser on a busy machine.
ANSWER_TIMEOUT_S = 120.0
_STOP_TIMEOUT_S = 20.0


@dataclass(frozen=True, slots=True)
class PeerRecogniser:
    """One recogniser to compare with. `model`: its model's folder or file. `library`: None runs in our environment."""

    name: str
    model: Path
    library: PeerLibrary | None = None


class PeerTranscriber:
    """A running recogniser. Created by `open_peer`."""

    def __init__(self, name: str, process: asyncio.subprocess.Process, folder: Path) -> None:
        self.name = name
        self.version = ""
        self.settings = ""
        self._process = process
        self._file = folder / f"{name.replace(' ', '-')}.wav"

    async def open(self, model: Path, *, language: str, threads: int) -> None:
        """Load its model. Raises PeerError."""
        answer = await self._ask(op="open", model=str(model), language=language, threads=threads)
        self.version, self.settings = str(answer["version"]), str(answer["settings"])

    async def transcribe(self, pcm: Pcm) -> MeasuredText:
        """Return the text of a sound (mono int16, 16 kHz). Raises PeerError."""
        with wave.open(str(self._file), "wb") as writer:
            writer.setnchannels(1)
            writer.setsampwidth(2)
            writer.setframerate(LISTEN_RATE_HZ)
            writer.writeframes(pcm.astype("<i2").tobytes())
        answer = await self._ask(op="transcribe", file=str(self._file))
        return MeasuredText(str(answer["text"]), float(answer["cpu_s"]), float(answer["wall_s"]))

    async def _ask(self, **request: object) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write((json.dumps(request) + "\n").encode())
            async with asyncio.timeout(ANSWER_TIMEOUT_S):
                await self._process.stdin.drain()
                answer = json.loads(await self._process.stdout.readline())
        except (OSError, TimeoutError, ValueError) as error:
            raise PeerError(f"{self.name} stopped answering ({type(error).__name__}).") from error
        if "error" in answer:
            raise PeerError(f"{self.name} failed: {answer['error']}")
        assert isinstance(answer, dict)
        return answer


@asynccontextmanager
async def open_peer(
    peer: PeerRecogniser, *, folder: Path, peers_dir: Path, language: str, threads: int, progress: Progress
) -> AsyncIterator[PeerTranscriber]:
    """Run another recogniser. `folder`: for the sounds that it gets. Raises PeerError if it does not start."""
    library = peer.library
    python = sys.executable if library is None else str(await peer_python(library, peers_dir, progress))
    process = await asyncio.create_subprocess_exec(
        python,
        str(PROGRAM),
        peer.name,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        # As in our own process: without it, numpy's threads spin beside the model's.
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    try:
        transcriber = PeerTranscriber(peer.name, process, folder)
        await transcriber.open(peer.model, language=language, threads=threads)
        yield transcriber
    finally:
        await _stop(process)


async def _stop(process: asyncio.subprocess.Process) -> None:
    if process.returncode is not None:
        return
    assert process.stdin is not None
    process.stdin.close()
    try:
        async with asyncio.timeout(_STOP_TIMEOUT_S):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()
