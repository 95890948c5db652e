"""Decides which utterances are recognised a second time, how that is done, and which text is kept.

Most texts are good at once, so only doubtful ones cost more. A text that cannot be complete, or that a guard would
drop, is recognised again without the glossary and with half a second of silence before the sound, because the same
input would give the same text: 'Roomtone, who can bring the long ladder?' gave 'Room' with and without a glossary, and
the whole sentence with the silence. A text that was dropped because the model is not sure of it is recognised again
carefully: the whole window, a wide beam. A text that no guard drops is kept as it is, however unsure the model is: a
careful pass made such texts no better, and their answers more than a second later (docs/decisions/0006).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

from voice.asr.guards import GuardReason, breaks_off, told_letter_count
from voice.audio import LISTEN_RATE_HZ

if TYPE_CHECKING:
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
class SecondPass:
    """How a sound is recognised again. `careful`: with more work, and only while nobody waits
    (`Recogniser.recognise`).
    """

    careful: bool
    leading_silence: bool
    glossary: bool

    def sound(self, pcm: Pcm) -> Pcm:
        """Return the sound to recognise instead of `pcm`."""
        return np.concatenate([LEADING_SILENCE, pcm]) if self.leading_silence else pcm


_PLAIN = SecondPass(careful=False, leading_silence=True, glossary=False)
_CAREFUL = SecondPass(careful=True, leading_silence=False, glossary=True)
_CAREFUL_WITHOUT_GLOSSARY = SecondPass(careful=True, leading_silence=False, glossary=False)
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
    if fault is not None:
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
