"""The speech engines of a rehearsal: recogniser, voice, and a speech-to-speech model made of the two.

Each engine loads its models when it is first needed. The answers of the speech-to-speech model are taken from the
session's own conversation: they contain only what the bot has put into the session.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from types import TracebackType

import numpy as np

from bot.brain.decider import Reason
from bot.brain.embedded.chat import Known, answer
from bot.brain.embedded.evidence import Evidence, best_match
from bot.brain.skip import SKIP, skip_instruction
from bot.brain.system_prompt import NOTES_HEAD, SUMMARY_HEAD
from bot.brain.wakeword import strip_call
from bot.models.directory import whisper_folder
from bot.models.voices import DEFAULT_VOICE, open_voice
from compaction.language.text import QUESTION_MARKS, sentences
from compaction.payload import PartKind
from compaction.untrusted_text import without_marks
from config.schema import Settings
from rehearsal.runner.local_servers import ServerModels
from rehearsal.servers.realtime_behaviour import FunctionCall, RealtimeEngines, ResponseContent, ResponseRequest
from rehearsal.servers.speech import SpeechEngine
from voice.asr.port import Recogniser, Recognition, RecognitionRequest
from voice.asr.scheduler import QueuedRecogniser
from voice.asr.second_hearing import PlainHearing, hear
from voice.asr.whisper import engine_on_best_device
from voice.audio import LISTEN_RATE_HZ, Pcm, duration_s
from voice.realtime.port import REALTIME_RATE_HZ
from voice.realtime.protocol import BROKEN_OFF
from voice.speaking.embedded import VoiceManner
from voice.speaking.resample import resample

SEARCH = "memory_search"
_REPEATABLE = VoiceManner(variety=0.0)
_TOOL_RESULT = "function_call_output"
# A turn in a tool result, and a quote in the instructions.
_SAID = re.compile(r"^\[\d\d:\d\d\] (?P<name>[^:\n]{1,60}): (?P<text>.+)$", re.MULTILINE)
_RECALLED = re.compile(r"^\[[^\]\n]+\] From memory[^:\n]*, (?P<name>[^:,\n]{1,60}): (?P<text>.+)$", re.MULTILINE)
_SPEAKS = re.compile(r"(?P<names>.+?) (?:speaks|speak at the same time):")
_NOTE = re.compile(r"\[\d\d:\d\d\] (?P<name>[^:]{1,60}): (?P<text>.*)", re.DOTALL)


def answer_request(asked: ResponseRequest, *, names: Sequence[str]) -> ResponseContent:
    """Return the answer, or a memory search first (once) if nothing is known about a question.

    If nobody asked anything, it comments on the newest screen note or stays silent.
    """
    if (
        skip_instruction(Reason.SCREEN) in asked.instructions
        or skip_instruction(Reason.QUIET_ROOM) in asked.instructions
    ):
        return _remark(asked.instructions) if skip_instruction(Reason.SCREEN) in asked.instructions else SKIP
    evidence, question, asker = _read(asked)
    searched = any(role == _TOOL_RESULT for role, _ in asked.items)
    if searched or SEARCH not in asked.tools or not question.rstrip().endswith(QUESTION_MARKS):
        return answer_text(asked, names=names)
    if best_match(question, evidence, ignore=tuple(names), asker=asker) is not None:
        return answer_text(asked, names=names)
    return FunctionCall(SEARCH, json.dumps({"query": strip_call(question, tuple(names))}))


def answer_text(asked: ResponseRequest, *, names: Sequence[str]) -> str:
    """Return the answer to the last input. An interrupted answer is continued."""
    evidence, question, asker = _read(asked)
    whole = answer(question, Known(evidence, time.time(), tuple(names)), asker=asker)
    if asked.items and asked.items[-1] == ("system", BROKEN_OFF):
        begun = next((text for role, text in reversed(asked.items) if role == "assistant"), "")
        return " ".join(whole.split()[len(begun.split()) :]) or "That was all."
    return whole


def _section(instructions: str, head: str) -> str:
    return without_marks(instructions.partition(f"{head}\n")[2].partition("\n\n")[0])


def _remark(instructions: str) -> str:
    """Return a comment on the newest screen note, or `SKIP` without one."""
    seen = _NOTE.fullmatch(_section(instructions, NOTES_HEAD).rpartition("\n")[2])
    return SKIP if seen is None else f"{seen['name']}, I see {seen['text']}"


def _read(asked: ResponseRequest) -> tuple[list[Evidence], str, str]:
    """Return the session's evidence, the last question, and its speaker."""
    found = [Evidence(each, PartKind.SUMMARY) for each in sentences(_section(asked.instructions, SUMMARY_HEAD))]
    quoted = [*_RECALLED.finditer(asked.instructions)]
    quoted += [said for role, text in asked.items if role == _TOOL_RESULT for said in _SAID.finditer(text)]
    found += [Evidence(each["text"], PartKind.TURN, each["name"]) for each in quoted]
    speaker = asker = "friend"
    question = ""
    known = len(found)
    for text in (text for role, text in asked.items if role == "user"):
        if label := _SPEAKS.fullmatch(text):
            speaker = label["names"]
            continue
        written = _NOTE.fullmatch(text)
        asker, question = (written["name"], written["text"]) if written else (speaker, text)
        found.append(Evidence(question, PartKind.TURN, speaker=asker))
    # The question itself is left out of the evidence, so that it is not quoted as its own answer.
    return found[: max(known, len(found) - 1)], question, asker


# The recogniser takes at most 30 s at once; longer answers are cut into pieces.
PIECE_SAMPLES = 28 * LISTEN_RATE_HZ
# What a room hears before a sentence. Of sound that begins with the first word, Whisper may hear two words alone.
_QUIET = np.zeros(3 * LISTEN_RATE_HZ // 10, np.int16)


class RehearsalRecogniser(AbstractAsyncContextManager["RehearsalRecogniser"]):
    """`rehearsal.runner.ports.HeardSoundRecogniser`. Loads the model when it is first needed, usually after the run.

    `names`: expected names, as glossary. A doubtful text is heard again, as in a room. *Ownership*: an async context
    manager that owns the recogniser.
    """

    def __init__(self, settings: Settings, *, names: tuple[str, ...] = ()) -> None:
        self._asr, self._folder = settings.asr, whisper_folder(settings.models, settings.asr)
        self._names = names
        self._stack = AsyncExitStack()
        self._recogniser: Recogniser | None = None

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    async def transcribe(self, pcm: Pcm) -> str:
        """Return the text of mono int16 audio at 16 kHz. Raises `RecogniserError`."""
        if self._recogniser is None:
            # With one thread a model is loaded once, for a third of the CPU time.
            self._recogniser = await self._stack.enter_async_context(
                QueuedRecogniser(engine_on_best_device(self._folder, self._asr, threads=1))
            )
        pieces = [pcm[at : at + PIECE_SAMPLES] for at in range(0, len(pcm), PIECE_SAMPLES)]
        heard = [await self._recognise(self._recogniser, np.concatenate([_QUIET, piece])) for piece in pieces]
        return " ".join(recognition.text for recognition in heard if recognition.text)

    async def _recognise(self, recogniser: Recogniser, piece: Pcm) -> Recognition:
        async def recognise(careful: bool) -> PlainHearing:
            recognition = await recogniser.recognise(
                RecognitionRequest(
                    piece,
                    language=self._asr.languages[0] if len(self._asr.languages) == 1 else self._asr.languages,
                    glossary=self._names,
                    careful=careful,
                )
            )
            return PlainHearing(recognition, self._names)

        speech_s = duration_s(piece)
        hearings = await hear(recognise, lambda heard: heard.fault(speech_s=speech_s), speech_s=speech_s)
        return hearings.used.recognition


@asynccontextmanager
async def realtime_engines(settings: Settings, *, names: Sequence[str] = ()) -> AsyncIterator[RealtimeEngines]:
    """Load the models and yield the speech-to-speech engines. `names`: expected names. Raises `VoiceError`."""
    async with (
        RehearsalRecogniser(settings, names=tuple(names)) as recogniser,
        open_voice(DEFAULT_VOICE, settings.models.directory, _REPEATABLE) as voice,
    ):

        async def recognise(pcm: Pcm) -> str:
            return await recogniser.transcribe(resample(pcm, REALTIME_RATE_HZ, LISTEN_RATE_HZ))

        async def reply(asked: ResponseRequest) -> ResponseContent:
            return answer_request(asked, names=settings.brain.names)

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
    async with open_voice(DEFAULT_VOICE, settings.models.directory, _REPEATABLE) as voice:

        async def speak(text: str) -> tuple[Pcm, int]:
            speech = await voice.synthesize(text)
            return speech.pcm, speech.rate_hz

        yield speak
