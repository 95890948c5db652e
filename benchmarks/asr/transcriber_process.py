"""Another recogniser in its own process, perhaps in an environment of its own: it reads and writes JSON lines.

Run as `python transcriber_process.py NAME`. It imports nothing of Roomtone, which may be missing there.

    {"op": "open", "model", "language", "threads"}  -> {"version", "settings"}
    {"op": "transcribe", "file"}                    -> {"text", "cpu_s", "wall_s"}   a WAV file, mono, 16 kHz, 16 bit
"""

from __future__ import annotations

import json
import os
import sys
import time
import wave
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    Sound = np.ndarray[Any, np.dtype[np.float32]]
    Transcribe = Callable[[Sound], str]


def faster_whisper(request: dict[str, Any]) -> tuple[Transcribe, str, str]:
    """Return `WhisperModel.transcribe` with its defaults, its version and its settings."""
    from faster_whisper import WhisperModel

    model = WhisperModel(request["model"], device="cpu", compute_type="int8", cpu_threads=request["threads"])

    def transcribe(sound: Sound) -> str:
        segments, _ = model.transcribe(sound, language=request["language"])
        return " ".join(segment.text.strip() for segment in segments)

    settings = f"transcribe() with its defaults (beam 5), int8, {request['threads']} threads, the language given"
    return transcribe, f"faster-whisper {version('faster-whisper')}", settings


def faster_whisper_batched(request: dict[str, Any]) -> tuple[Transcribe, str, str]:
    """Return `BatchedInferencePipeline.transcribe` with its defaults."""
    from faster_whisper import BatchedInferencePipeline, WhisperModel

    model = WhisperModel(request["model"], device="cpu", compute_type="int8", cpu_threads=request["threads"])
    pipeline = BatchedInferencePipeline(model)

    def transcribe(sound: Sound) -> str:
        segments, _ = pipeline.transcribe(sound, language=request["language"])
        return " ".join(segment.text.strip() for segment in segments)

    settings = f"transcribe() with its defaults (batches of 8, VAD), int8, {request['threads']} threads"
    return transcribe, f"faster-whisper {version('faster-whisper')}", f"{settings}, the language given"


def whisper_cpp(request: dict[str, Any]) -> tuple[Transcribe, str, str]:
    """Return whisper.cpp with its defaults."""
    from pywhispercpp.model import Model

    model = Model(request["model"], n_threads=request["threads"], print_progress=False)

    def transcribe(sound: Sound) -> str:
        return " ".join(segment.text.strip() for segment in model.transcribe(sound, language=request["language"]))

    settings = f"transcribe() with its defaults (greedy), {request['threads']} threads, the language given"
    return transcribe, f"pywhispercpp {version('pywhispercpp')}", settings


RECOGNISERS: dict[str, Callable[[dict[str, Any]], tuple[Transcribe, str, str]]] = {
    "faster-whisper": faster_whisper,
    "faster-whisper, batched": faster_whisper_batched,
    "whisper.cpp": whisper_cpp,
}


def serve(name: str, answers: int) -> None:
    """Answer requests until stdin ends. A failure is not raised; the answer is then `{"error"}`."""
    transcribe: Transcribe | None = None
    for line in sys.stdin:
        request = json.loads(line)
        answer: dict[str, object]
        try:
            if request["op"] == "open":
                transcribe, found, settings = RECOGNISERS[name](request)
                answer = {"version": found, "settings": settings}
            else:
                assert transcribe is not None, "opened before"
                sound = _read(request["file"])
                worked, begun = time.process_time(), time.perf_counter()
                text = transcribe(sound)
                answer = {"text": text, "cpu_s": time.process_time() - worked, "wall_s": time.perf_counter() - begun}
        except Exception as error:  # noqa: BLE001 - whatever a library raises is its answer
            answer = {"error": f"{type(error).__name__}: {error}"[:500]}
        os.write(answers, (json.dumps(answer) + "\n").encode())


def _read(path: str) -> Sound:
    with wave.open(path, "rb") as reader:
        return np.frombuffer(reader.readframes(reader.getnframes()), "<i2").astype(np.float32) / 32_768.0


if __name__ == "__main__":
    # Libraries print to stdout, so redirect stdout to stderr and keep the original stdout for the answers.
    channel = os.dup(1)
    os.dup2(2, 1)
    serve(sys.argv[1], channel)
