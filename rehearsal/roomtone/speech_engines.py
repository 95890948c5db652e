"""The speech engines of a rehearsal: recogniser, voice, and a speech-to-speech model made of the two.

Each engine loads its models when it is first needed.
"""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Self

from bot.models.catalogue import VOICE_JOE
from bot.models.directory import ModelDirectory, whisper_folder
from rehearsal.roomtone.realtime_answers import answer_request
from rehearsal.runner.local_servers import ServerModels
from rehearsal.servers.realtime_behaviour import RealtimeEngines
from voice.asr.scheduler import QueuedRecogniser
from voice.asr.second_hearing import PlainHearing, hear
from voice.asr.whisper import whisper_on_best_device
from voice.audio import LISTEN_RATE_HZ, duration_s
from voice.realtime.port import REALTIME_RATE_HZ
from voice.speaking.piper import PiperSynthesizer
from voice.speaking.resample import resample

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from types import TracebackType

    from config.schema import Settings
    from rehearsal.servers.realtime_behaviour import ResponseContent, ResponseRequest
    from rehearsal.servers.speech import SpeechEngine
    from voice.asr.port import Recogniser, Recognition
    from voice.audio import Pcm

# The recogniser takes at most 30 s at once; longer answers are cut into pieces.
PIECE_SAMPLES = 28 * LISTEN_RATE_HZ


class RehearsalRecogniser:
    """`rehearsal.runner.ports.HeardSoundRecogniser`. Loads the model when it is first needed, usually after the run.

    `names`: expected names, as glossary. A doubtful text is heard again, as in a room. *Ownership*: an async context
    manager that owns the recogniser.
    """

    def __init__(self, settings: Settings, *, names: tuple[str, ...] = ()) -> None:
        self._asr, self._folder = settings.asr, whisper_folder(settings.models, settings.asr)
        self._names = names
        self._stack = AsyncExitStack()
        self._recogniser: Recogniser | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    async def transcribe(self, pcm: Pcm) -> str:
        """Return the text of mono int16 audio at 16 kHz. Raises `RecogniserError`."""
        if self._recogniser is None:
            self._recogniser = await self._stack.enter_async_context(
                QueuedRecogniser(whisper_on_best_device(self._folder, self._asr).load)
            )
        language = self._asr.fixed_language
        pieces = [pcm[at : at + PIECE_SAMPLES] for at in range(0, len(pcm), PIECE_SAMPLES)]
        heard = [await self._recognise(self._recogniser, piece, language) for piece in pieces]
        return " ".join(recognition.text for recognition in heard if recognition.text)

    async def _recognise(self, recogniser: Recogniser, piece: Pcm, language: str | None) -> Recognition:
        async def recognise(careful: bool) -> PlainHearing:
            recognition = await recogniser.recognise(piece, language=language, glossary=self._names, careful=careful)
            return PlainHearing(recognition, self._names)

        speech_s = duration_s(piece)
        hearings = await hear(recognise, lambda heard: heard.fault(speech_s=speech_s), speech_s=speech_s)
        return hearings.used.recognition


@asynccontextmanager
async def realtime_engines(settings: Settings, *, names: Sequence[str] = ()) -> AsyncIterator[RealtimeEngines]:
    """Load the models and yield the speech-to-speech engines. `names`: expected names. Raises `VoiceError`."""
    directory = ModelDirectory(settings.models.directory).path(VOICE_JOE)
    async with (
        RehearsalRecogniser(settings, names=tuple(names)) as recogniser,
        PiperSynthesizer.open(directory, variety=0.0) as voice,
    ):

        async def recognise(pcm: Pcm) -> str:
            return await recogniser.transcribe(resample(pcm, REALTIME_RATE_HZ, LISTEN_RATE_HZ))

        async def reply(asked: ResponseRequest) -> ResponseContent:
            return answer_request(asked, names=(settings.brain.name, *settings.brain.wake_names))

        async def speak(text: str) -> Pcm:
            speech = await voice.synthesize(text)
            return resample(speech.pcm, speech.rate_hz, REALTIME_RATE_HZ)

        yield RealtimeEngines(recognise, reply, speak)


def local_engines(settings: Settings, names: tuple[str, ...]) -> ServerModels:
    """Return the factories of the engines that a scenario may need. `names`: expected names."""
    return ServerModels(voice=lambda: _voice(settings), realtime=lambda: realtime_engines(settings, names=names))


@asynccontextmanager
async def _voice(settings: Settings) -> AsyncIterator[SpeechEngine]:
    """Load the embedded voice and yield it as an engine. Raises `SynthesisError`."""
    directory = ModelDirectory(settings.models.directory).path(VOICE_JOE)
    async with PiperSynthesizer.open(directory, variety=0.0) as voice:

        async def speak(text: str) -> tuple[Pcm, int]:
            speech = await voice.synthesize(text)
            return speech.pcm, speech.rate_hz

        yield speak
