"""Decides which utterances are recognised a second time, how that is done, and which text is kept.

Most texts are good at once, so only doubtful ones cost more. A text that cannot be complete, or that a guard would
drop, is recognised again without the glossary and with half a second of silence before the sound, because the same
input would give the same text: 'Roomtone, who can bring the long ladder?' gave 'Room' with and without a glossary, and
the whole sentence with the silence. A text that was dropped because the model is not sure of it is recognised again
carefully: the whole window, a wide beam. A text that no guard drops is kept as it is, however unsure the model is: a
careful pass made such texts no better, and their answers more than a second later (docs/decisions/0006). Whoever hears
as a room does calls `recognise_with_second_passes`; the rest is pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

import numpy as np

from voice.asr.guards import GuardReason, breaks_off, judge, told_letter_count
from voice.asr.sound_effect import is_sound_effect
from voice.audio import LISTEN_RATE_HZ
from voice.errors import RecogniserError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from voice.asr.port import Recognition
    from voice.audio import Pcm

# A text that a guard would drop comes back only if the second one is this sure. Of 32 words and short phrases, cut from
# running speech, that were dropped, 16 came back without this bound, with as many errors as words; 6 with it, 3 of them
# word for word.
RESCUED_LOGPROB = -0.8
LEADING_SILENCE = np.zeros(LISTEN_RATE_HZ // 2, np.int16)


class Doubt(StrEnum):
    """Why a sound is recognised again."""

    BROKEN_OFF = "broken_off"  # fewer letters than its speech must have, repeated words left out
    DROPPED = "dropped"  # a guard would drop the text, though somebody spoke
    GLOSSARY = "glossary"  # nothing but names and words that the recogniser was told
    UNSURE = "unsure"  # a guard would drop the text, because the model's own probability is low


@dataclass(frozen=True, slots=True)
class RecognitionPass:
    """How a sound is recognised. `careful`: with more work, and only while nobody waits (`Recogniser.recognise`)."""

    careful: bool
    leading_silence: bool
    glossary: bool

    def sound(self, pcm: Pcm) -> Pcm:
        """Return the sound to recognise for `pcm`."""
        return np.concatenate([LEADING_SILENCE, pcm]) if self.leading_silence else pcm


FIRST_PASS = RecognitionPass(careful=False, leading_silence=False, glossary=True)
_PLAIN = RecognitionPass(careful=False, leading_silence=True, glossary=False)
_CAREFUL = RecognitionPass(careful=True, leading_silence=False, glossary=True)
_CAREFUL_WITHOUT_GLOSSARY = RecognitionPass(careful=True, leading_silence=False, glossary=False)
# The ways of each doubt, in order; the first that mends the text ends the search.
SECOND_PASSES = {
    Doubt.BROKEN_OFF: (_PLAIN,),
    Doubt.DROPPED: (_PLAIN, _CAREFUL_WITHOUT_GLOSSARY),
    # Whoever did say these names is heard in other spelling; a careful pass would find words in a laugh.
    Doubt.GLOSSARY: (_PLAIN,),
    Doubt.UNSURE: (_CAREFUL,),
}
# A glossary makes unusual words likelier, sometimes so much that nothing else is recognised; a small model also
# stammers. Noise, echoes and phantom phrases are dropped for good.
_WORTH_ANOTHER = frozenset({GuardReason.REPETITIVE, GuardReason.TOO_SPARSE, GuardReason.GIBBERISH})


def doubt_about(recognition: Recognition, fault: GuardReason | None, *, speech_s: float) -> Doubt | None:
    """Return why a sound is worth a second pass, or None. `fault`: what `guards.judge` says of the text."""
    if fault in _WORTH_ANOTHER:
        return Doubt.DROPPED
    if fault is GuardReason.GLOSSARY:
        return Doubt.GLOSSARY
    if fault is GuardReason.LOW_CONFIDENCE:
        return Doubt.UNSURE
    if fault is not None or is_sound_effect(recognition.text):
        return None
    return Doubt.BROKEN_OFF if breaks_off(recognition.text, speech_s=speech_s) else None


def is_mended(first: Recognition, second: Recognition, doubt: Doubt, fault: GuardReason | None) -> bool:
    """Return whether `second` is the text to keep. `fault`: what `guards.judge` says of the second text."""
    if fault is not None:
        return False
    match doubt:
        case Doubt.DROPPED | Doubt.GLOSSARY:
            return True
        case Doubt.BROKEN_OFF:
            return told_letter_count(second.text) > told_letter_count(first.text)
        case Doubt.UNSURE:
            return second.mean_logprob > RESCUED_LOGPROB


class PassResult(Protocol):
    """What one pass gave. A caller's own type has more in it."""

    @property
    def recognition(self) -> Recognition | None:
        """The text; None if the pass failed or was refused."""


ResultT = TypeVar("ResultT", bound=PassResult)


@dataclass(frozen=True, slots=True)
class PlainPassResult:
    """The result of a pass outside a room, where nothing is known of the speaker. `glossary`: the names and words that
    the recogniser was told.
    """

    recognition: Recognition
    glossary: tuple[str, ...]

    def fault(self, *, speech_s: float) -> GuardReason | None:
        """Return why the text must be dropped, or None (`guards.judge`)."""
        return judge(self.recognition, speech_s=speech_s, glossary=self.glossary)


@dataclass(frozen=True, slots=True)
class PassResults(Generic[ResultT]):
    """What all passes over one sound gave. `doubt`: why there were second passes; None: there were none. `second`:
    theirs, in order. `mended`: whether the last of them is to be used instead of the first one.
    """

    first: ResultT
    doubt: Doubt | None = None
    second: tuple[ResultT, ...] = ()
    mended: bool = False

    @property
    def used(self) -> ResultT:
        """The result with the text to use."""
        return self.second[-1] if self.mended else self.first


async def recognise_with_second_passes(
    recognise: Callable[[RecognitionPass], Awaitable[ResultT]],
    guard: Callable[[ResultT], GuardReason | None],
    *,
    speech_s: float,
) -> PassResults[ResultT]:
    """Recognise a sound, and again while its text is doubtful and another way is left.

    `recognise`: makes one pass. `guard`: returns what `guards.judge` says of its text. `speech_s`: seconds of speech in
    the sound. A second pass that raises `RecogniserError` gives nothing, and the search goes on. Raises it for the
    first pass.
    """
    first = await recognise(FIRST_PASS)
    if first.recognition is None:
        return PassResults(first)
    doubt = doubt_about(first.recognition, guard(first), speech_s=speech_s)
    if doubt is None:
        return PassResults(first)
    made: list[ResultT] = []
    for way in SECOND_PASSES[doubt]:
        try:
            second = await recognise(way)
        except RecogniserError:
            continue
        made.append(second)
        if second.recognition is not None and is_mended(first.recognition, second.recognition, doubt, guard(second)):
            return PassResults(first, doubt, tuple(made), mended=True)
    return PassResults(first, doubt, tuple(made))
