"""Measures what becomes of a question in two parts: somebody pauses inside it, and the bot may begin too soon.

A synthetic voice says the name, a recording of a person is cut where it is quietest, and a pause is put there. Nobody
says the name again, and a second person is present, so that only the name calls the bot. A question is answered whole
if the last answer begins after all of it and its prompt asks for every word that was heard. What else was heard of an
answer that gave way is counted in words, as the bot logs it.
"""

from __future__ import annotations

import asyncio
import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.figures import share_of, spread
from benchmarks.reply.measured_room import BenchmarkRoom, open_room
from benchmarks.synthetic_speech import evenly, in_a_room, speak_evenly, trimmed
from bot.brain.settings import BrainSettings
from bot.brain.wakeword import use_of_name
from bot.models.voices import DEFAULT_VOICE, open_voice
from rehearsal.people.clip import FRAME_SAMPLES, RATE_HZ, Clip, frame_rms, opus_packets, read_sound, voiced_bounds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.measuring import Progress
    from benchmarks.recordings import SpeechRecording
    from benchmarks.report import Json
    from bot.events import UtteranceTranscribed
    from bot.settings import ModelsSettings
    from rehearsal.servers.chat import ChatCall
    from voice.audio import Pcm

# Each recording has one of them, in turn. Shorter ones belong to articulation, longer ones end speech.
GAPS_S = (0.25, 0.4, 0.6, 0.8, 1.0, 1.2)
# Between these shares of the voice's energy it is cut, in the middle of its quietest tenth of a second.
_CUT_FROM, _CUT_TO, _QUIET_FRAMES = 0.25, 0.75, 5
# After the name, and the noise of a quiet room.
_AFTER_NAME_S, _NOISE_RMS, _SEED = 0.15, 16.0, 86
# One sentence that takes some seconds, so that no whole one is heard before somebody goes on.
ANSWER = "I would say that it depends on what you want to do with it."
PEOPLE, _ANSWER_TIMEOUT_S, _BETWEEN_S = 2, 12.0, 1.0


@dataclass(frozen=True, slots=True)
class TwoParts:
    """One question: the name, and a recording with a pause of `gap_s` inside it. `for_tuning`: it is in the half on
    which something may be fitted.
    """

    recording: SpeechRecording
    gap_s: float
    for_tuning: bool


@dataclass(frozen=True, slots=True)
class Became:
    """What became of a question. `gave_way_words`: of each answer that gave way, how much was heard."""

    question: TwoParts
    answered: bool
    whole: bool
    name_heard: bool
    gave_way_words: tuple[int, ...]


def two_parts(recordings: Sequence[SpeechRecording]) -> tuple[TwoParts, ...]:
    """Return the table of questions: each gap is as often in both halves."""
    return tuple(
        TwoParts(one, GAPS_S[number % len(GAPS_S)], number // len(GAPS_S) % 2 == 0)
        for number, one in enumerate(recordings)
    )


def cut_at_quiet(voice: Pcm) -> tuple[Pcm, Pcm]:
    """Return both parts of a voice (48 kHz mono), cut where it is quietest, without the silence around each."""
    rms = frame_rms(voice, FRAME_SAMPLES)
    # Some recordings have a second of loud noise at an end, where there are no words.
    first, last = np.searchsorted(np.cumsum(rms**2) / np.sum(rms**2), (_CUT_FROM, _CUT_TO))
    quiet = np.convolve(rms, np.ones(_QUIET_FRAMES), "same")[first:last]
    at = int(first + np.argmin(quiet)) * FRAME_SAMPLES
    return trimmed(voice[:at]), trimmed(voice[at:])


def said_in_two(name: Pcm, voice: Pcm, gap_s: float) -> tuple[Pcm, float]:
    """Return the name and both parts of a voice with their pauses, and when the second part begins, in seconds."""
    before, after = cut_at_quiet(voice)
    first = np.concatenate([name, _silence(_AFTER_NAME_S), before, _silence(gap_s)])
    return in_a_room(np.concatenate([first, after]), _NOISE_RMS, [_SEED]), len(first) / RATE_HZ


async def measure_two_parts(
    recordings: Sequence[SpeechRecording], models: ModelsSettings, *, progress: Progress
) -> dict[str, Json]:
    """Say each recording in two parts. Raises `SynthesisError` if the bot's own voice is missing."""
    async with open_voice(DEFAULT_VOICE, models.directory) as voice:
        name = await speak_evenly(voice, "Roomtone,")
    progress.step("questions in two parts", total=len(recordings))
    became: list[Became] = []
    async with open_room(people=PEOPLE) as room:
        room.model.behaviour.answer = lambda call: ANSWER
        for number, question in enumerate(two_parts(recordings)):
            became.append(await _ask(room, number % PEOPLE, name, question))
            progress.advance()
        return {
            **figures(became),
            "tuning": figures([one for one in became if one.question.for_tuning]),
            "judging": figures([one for one in became if not one.question.for_tuning]),
            "warned_of": [*room.troubles],
        }


def figures(became: Sequence[Became]) -> dict[str, Json]:
    """Return the figures of these questions."""
    whole = sum(one.whole for one in became)
    return {
        "questions": len(became),
        "answered_whole": whole,
        "answered_whole_share": share_of(whole, len(became)),
        "unanswered": sum(not one.answered for one in became),
        "name_not_heard": sum(not one.name_heard for one in became),
        "begun_too_soon": sum(bool(one.gave_way_words) for one in became),
        "words_heard": spread([float(words) for one in became for words in one.gave_way_words]),
        # Those whose gap it was, and how many of them were answered whole.
        "by_gap": {
            f"{gap_s:g} s": [sum(one.whole for one in of), len(of)]
            for gap_s in GAPS_S
            if (of := [one for one in became if one.question.gap_s == gap_s])
        },
    }


async def _ask(room: BenchmarkRoom, person: int, name: Pcm, question: TwoParts) -> Became:
    recorded = await asyncio.to_thread(read_sound, question.recording.path)
    sound, second_s = said_in_two(name, evenly(recorded), question.gap_s)
    bounds = voiced_bounds(sound, FRAME_SAMPLES)
    assert bounds is not None, "both parts have a voice"
    utterances, lines = len(room.record.utterances), len(room.lines)
    said = await room.people[person].say(Clip(question.recording.path.name, opus_packets(sound), bounds))

    second_at = said.started_at + second_s

    def own() -> list[UtteranceTranscribed]:
        return room.record.utterances[utterances:]

    def is_answered() -> bool:
        # It began after the last words, and was heard to its end.
        heard = own()
        return bool(heard) and any(
            one.first_audio_at > heard[-1].ended_at > second_at and not one.interrupted for one in room.record.replies
        )

    await room.record.wait_until(is_answered, timeout_s=_ANSWER_TIMEOUT_S)
    await asyncio.sleep(_BETWEEN_S)
    answered, heard = is_answered(), own()
    return Became(
        question,
        answered=answered,
        whole=answered
        and heard[0].started_at < second_at - question.gap_s
        and all(one.text in _asked(room.model.calls[-1]) for one in heard),
        name_heard=any(use_of_name(one.text, BrainSettings().names).mentioned for one in heard),
        gave_way_words=tuple(
            int(line["words"]) for line in room.lines[lines:] if line.get("event") == "reply_gave_way"
        ),
    )


def _asked(call: ChatCall) -> str:
    """Return what the prompt asks for: all that people have said since the bot spoke."""
    said = itertools.takewhile(lambda each: each.get("role") != "assistant", reversed(call.messages))
    return " ".join(str(each.get("content", "")) for each in said)


def _silence(seconds: float) -> Pcm:
    return np.zeros(round(seconds * RATE_HZ), np.int16)
