"""A Pipecat voice pipeline, unmodified: Silero, Smart Turn, Whisper, a chat endpoint, Piper.

Everything has Pipecat's defaults but for what both sides of the comparison share: the recogniser's model and its int8
weights, the endpoint, the voice. The transport is ours: recordings go in as frames of 20 ms in real time, with silence
between them, and the sound that comes out is paced as Pipecat's own websocket transport paces it. Runs in its own
environment, see `peer_server`.
"""

from __future__ import annotations

import asyncio
import resource
import time
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from loguru import logger
from pipecat.audio.vad.silero import SileroVADAnalyzer
from pipecat.frames.frames import (
    BotStartedSpeakingFrame,
    BotStoppedSpeakingFrame,
    EndFrame,
    Frame,
    InputAudioRawFrame,
    LLMTextFrame,
    OutputAudioRawFrame,
    StartFrame,
    TranscriptionFrame,
    TTSAudioRawFrame,
    UserStoppedSpeakingFrame,
    VADUserStoppedSpeakingFrame,
)
from pipecat.observers.base_observer import BaseObserver, FramePushed
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.worker import PipelineWorker
from pipecat.processors.aggregators.llm_context import LLMContext
from pipecat.processors.aggregators.llm_response_universal import (
    LLMContextAggregatorPair,
    LLMUserAggregatorParams,
)
from pipecat.services.openai.llm import OpenAILLMService
from pipecat.services.piper.tts import PiperTTSService
from pipecat.services.whisper.stt import WhisperSTTService
from pipecat.transports.base_input import BaseInputTransport
from pipecat.transports.base_output import BaseOutputTransport
from pipecat.transports.base_transport import TransportParams
from pipecat.workers.runner import WorkerRunner

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

RATE_HZ = 16_000
FRAME_S = 0.02
FRAME_SAMPLES = 320
# As in rehearsal.people.received_speech: louder than this is voice.
VOICED_RMS = 200.0
START_TIMEOUT_S = 60.0
POLL_S = 0.01
# The longest wait for the end of everything that a recording began, on a machine that is too slow for it.
SETTLE_TIMEOUT_S = 20.0
# The moments of an answer, in order. Each is the time at which Pipecat first pushed a frame of that type.
NOTED = {
    VADUserStoppedSpeakingFrame: "pause",
    TranscriptionFrame: "text",
    UserStoppedSpeakingFrame: "turn",
    LLMTextFrame: "model",
    TTSAudioRawFrame: "synthesis",
    BotStartedSpeakingFrame: "reply",
    BotStoppedSpeakingFrame: "reply_end",
}


@dataclass(frozen=True)
class Moment:
    """Something happened at this time (monotonic seconds). `name`: as in `NOTED`, or `voice`, a voiced chunk sent."""

    name: str
    at: float


class Moments(BaseObserver):
    """Notes when each frame of interest was pushed for the first time. A broadcast frame counts once."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Moment] = []
        self._ids: set[int] = set()

    async def on_push_frame(self, data: FramePushed) -> None:
        """Note the frame."""
        name = NOTED.get(type(data.frame))
        if name is None or not data.first_push or data.frame.broadcast_sibling_id in self._ids:
            return
        self._ids.add(data.frame.id)
        # Pipecat tells its observers later, and when the frame was pushed by its own clock.
        ago_s = (data.source.get_clock().get_time() - data.timestamp) / 1e9
        self.seen.append(Moment(name, time.monotonic() - ago_s))

    def named(self, name: str, *, since: float, until: float = float("inf")) -> list[float]:
        """Return the times of this name."""
        return [one.at for one in self.seen if one.name == name and since <= one.at <= until]


class Microphone(BaseInputTransport):
    """Pushes frames of 20 ms in real time: a recording, and silence when there is none."""

    def __init__(self, params: TransportParams) -> None:
        super().__init__(params)
        self._recording = np.zeros(0, np.int16)
        self._begin = asyncio.Event()
        self._ended = asyncio.Event()
        self._feeding: asyncio.Task[None] | None = None
        self._started_at = 0.0

    async def start(self, frame: StartFrame) -> None:
        """Begin to push."""
        await super().start(frame)
        await self.set_transport_ready(frame)
        self._feeding = self.create_task(self._feed(), name="microphone")

    async def cleanup(self) -> None:
        """Stop pushing."""
        if self._feeding is not None:
            await self.cancel_task(self._feeding)
            self._feeding = None
        await super().cleanup()

    async def play(self, pcm: np.ndarray) -> float:
        """Play a recording to its end. Returns when its first frame was pushed."""
        self._recording = np.pad(pcm, (0, -len(pcm) % FRAME_SAMPLES))
        self._ended.clear()
        self._begin.set()
        await self._ended.wait()
        return self._started_at

    async def _feed(self) -> None:
        begun, number = time.monotonic(), 0
        playing, at = np.zeros(0, np.int16), 0
        silence = bytes(2 * FRAME_SAMPLES)
        while True:
            await asyncio.sleep(max(0.0, begun + number * FRAME_S - time.monotonic()))
            number += 1
            if self._begin.is_set():
                self._begin.clear()
                playing, at, self._started_at = self._recording, 0, time.monotonic()
            sound = silence
            if at < len(playing):
                sound, at = playing[at : at + FRAME_SAMPLES].tobytes(), at + FRAME_SAMPLES
                if at >= len(playing):
                    self._ended.set()
            await self.push_audio_frame(InputAudioRawFrame(sound, RATE_HZ, 1))


class Loudspeaker(BaseOutputTransport):
    """Takes the sound at the pace at which it would be played, and notes each chunk that has a voiced frame."""

    def __init__(self, params: TransportParams, moments: Moments) -> None:
        super().__init__(params)
        self._moments = moments
        self._next_at = 0.0

    async def start(self, frame: StartFrame) -> None:
        """Tell Pipecat that sound can be sent."""
        await super().start(frame)
        await self.set_transport_ready(frame)

    async def write_audio_frame(self, frame: OutputAudioRawFrame) -> bool:
        """Take one chunk."""
        pcm = np.frombuffer(frame.audio, np.int16).astype(np.float64)
        samples = round(frame.sample_rate * FRAME_S)
        frames = np.pad(pcm, (0, -len(pcm) % samples)).reshape(-1, samples)
        if np.sqrt(np.mean(frames**2, axis=1)).max(initial=0.0) > VOICED_RMS:
            self._moments.seen.append(Moment("voice", time.monotonic()))
        now = time.monotonic()
        await asyncio.sleep(max(0.0, self._next_at - now))
        self._next_at = max(self._next_at, now) + len(pcm) / frame.sample_rate
        return True


class CountingWhisper(WhisperSTTService):
    """Pipecat's Whisper service, which also tells whether it still has something to recognise."""

    _running = 0

    @property
    def waiting(self) -> bool:
        """Whether a recognition runs or waits."""
        return self._running > 0 or not self._segment_queue.empty()

    async def run_stt(self, audio: bytes) -> AsyncGenerator[Frame, None]:
        """Recognise one segment."""
        self._running += 1
        try:
            async for frame in super().run_stt(audio):
                yield frame
        finally:
            self._running -= 1


class PipecatVoicePeer:
    """A running pipeline that one person speaks to."""

    def __init__(self, request: dict[str, Any]) -> None:
        self.version = f"pipecat-ai {version('pipecat-ai')}"
        self._moments = Moments()
        params = TransportParams(audio_in_enabled=True, audio_out_enabled=True)
        self._microphone = Microphone(params)
        self._recogniser = CountingWhisper(
            device="cpu", compute_type="int8", settings=WhisperSTTService.Settings(model=request["whisper"])
        )
        model = OpenAILLMService(
            api_key="none",
            base_url=request["base_url"],
            settings=OpenAILLMService.Settings(model=request["model"]),
        )
        voice = Path(request["voice"])
        synthesis = PiperTTSService(
            download_dir=voice.parent, settings=PiperTTSService.Settings(voice=voice.name.removesuffix(".onnx"))
        )
        pair = LLMContextAggregatorPair(
            LLMContext(), user_params=LLMUserAggregatorParams(vad_analyzer=SileroVADAnalyzer())
        )
        loudspeaker = Loudspeaker(params, self._moments)
        self._worker = PipelineWorker(
            Pipeline(
                [self._microphone, self._recogniser, pair.user(), model, synthesis, loudspeaker, pair.assistant()]
            ),
            cancel_on_idle_timeout=False,
            enable_rtvi=False,
            observers=[self._moments],
        )
        self._running: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start the pipeline and wait until it runs."""
        started = asyncio.Event()

        async def on_started(*_: object) -> None:
            started.set()

        self._worker.add_event_handler("on_pipeline_started", on_started)
        runner = WorkerRunner(handle_sigint=False)
        await runner.add_workers(self._worker)
        self._running = asyncio.create_task(runner.run(), name="pipeline")
        async with asyncio.timeout(START_TIMEOUT_S):
            await started.wait()

    async def speak(
        self, *, file: str, voice_end_s: float, end_s: float, answer_timeout_s: float, gap_s: float
    ) -> dict[str, Any]:
        """Play a recording and wait for the answer. `file`: raw mono int16 at 16 kHz. `end_s`: where the times are
        counted from; `voice_end_s`: a reply that begins later is the answer.

        Returns `total_ms` (None without an answer), the times of `NOTED` since the end as `moments_ms`, how many turns
        ended before the voice did (`cut`), whether text of this recording came after the answer was asked for
        (`late_text`), the CPU seconds of this process as `cpu_s`, and the seconds of all as `wall_s`.
        """
        worked, begun = _cpu_s(), time.monotonic()
        started_at = await self._microphone.play(np.fromfile(file, np.int16))
        late_from, end = started_at + voice_end_s, started_at + end_s
        until = time.monotonic() + answer_timeout_s
        while time.monotonic() < until:  # a short wait is simpler than an event for each of the observer's moments
            if self._moments.named("reply_end", since=self._reply_at(late_from)):
                break
            await asyncio.sleep(POLL_S)
        await self._settle(gap_s)
        answer = self._answer_moments(late_from)
        told = {
            "cut": len(self._moments.named("turn", since=started_at, until=end)),
            "late_text": answer is not None and bool(self._moments.named("text", since=answer["turn"])),
            "total_ms": None if answer is None else (answer["voice"] - end) * 1000,
            "moments_ms": {name: (at - end) * 1000 for name, at in (answer or {}).items()},
            "cpu_s": _cpu_s() - worked,
            "wall_s": time.monotonic() - begun,
        }
        self._moments.seen.clear()
        return told

    async def _settle(self, gap_s: float) -> None:
        """Wait until nothing has happened for `gap_s` and nothing is due, so that text which is late does not fall into
        the next recording.
        """
        begun = time.monotonic()
        until = begun + SETTLE_TIMEOUT_S
        while (now := time.monotonic()) < until:
            text, turn, reply, reply_end = (
                max(self._moments.named(name, since=0.0), default=0.0)
                for name in ("text", "turn", "reply", "reply_end")
            )
            last = max((one.at for one in self._moments.seen), default=begun)
            due = self._recogniser.waiting or text > turn or turn > reply or reply > reply_end
            if not due and now - max(last, begun) >= gap_s:
                return
            await asyncio.sleep(POLL_S)

    def _reply_at(self, since: float) -> float:
        """Return when the first reply began that began since then, or infinity."""
        return next(iter(self._moments.named("reply", since=since)), float("inf"))

    def _answer_moments(self, since: float) -> dict[str, float] | None:
        """Return the times of the first answer that began since then, or None."""
        reply_at = self._reply_at(since)
        voiced = self._moments.named("voice", since=reply_at)
        before = {name: self._moments.named(name, since=0.0, until=reply_at) for name in ("pause", "text", "turn")}
        if not voiced or not all(before.values()):
            return None
        told = {name: times[-1] for name, times in before.items()}
        for name in ("model", "synthesis"):
            told[name] = next(iter(self._moments.named(name, since=told["turn"])), reply_at)
        return {**told, "voice": voiced[0]}

    async def close(self) -> None:
        """Stop the pipeline."""
        if self._running is not None:
            await self._worker.queue_frame(EndFrame())
            done, _ = await asyncio.wait({self._running}, timeout=10)
            if not done:
                self._running.cancel()


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


async def open_peer(request: dict[str, Any]) -> PipecatVoicePeer:
    """Return the running pipeline, whose models are loaded; its `close` ends it. `request`: the fields of "open" that
    `peer_server` lists for a peer that speaks.
    """
    logger.remove()
    peer = PipecatVoicePeer(request)
    await peer.start()
    return peer
