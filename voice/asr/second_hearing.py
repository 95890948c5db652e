"""Decides which sounds are recognised a second time, and which of the two texts is used.

The first hearing encodes a short window (`voice.asr.worker`). With it, Whisper breaks about one short question
in forty: it writes the name alone, or the sentence twice. Such a text has fewer or more letters than its speech, or
the model is not sure of it. So has one in twelve of all short texts, and these are heard again in the whole window,
which costs six times as much and breaks none (docs/decisions/0006). Whoever hears as a room does calls `hear`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from voice.asr.guards import GuardReason, judge, letter_count
from voice.asr.sound_effect import is_sound_effect
from voice.errors import RecogniserError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from voice.asr.port import Recognition

# Good texts of short questions have 8 to 20 letters for each second of speech, broken ones up to 6.4 or from 26.
FEWEST_LETTERS_PER_S = 7.0
MOST_LETTERS_PER_S = 22.0
SURE_LOGPROB = -0.3
# Of what is longer, an unsure text is seldom better in the whole window, which would be encoded for one in ten.
SHORT_S = 5.0
# What is shorter is a word or two, of which the number of letters says nothing.
ONE_WORD_S = 1.2
# A text that a guard would drop comes back only if the second one is this sure.
RESCUED_LOGPROB = -0.8
# A glossary makes unusual words likelier, sometimes so much that nothing else is recognised; a small model also
# stammers. Noise, echoes and phantom phrases are dropped for good.
_WORTH_ANOTHER = frozenset(
    {
        GuardReason.REPETITIVE,
        GuardReason.TOO_SPARSE,
        GuardReason.GIBBERISH,
        GuardReason.GLOSSARY,
        GuardReason.LOW_CONFIDENCE,
    }
)


class SingleHearing(Protocol):
    """What one recognition gave. A caller's own type has more in it."""

    @property
    def recognition(self) -> Recognition | None:
        """The text; None if the recogniser failed or refused."""


HearingT = TypeVar("HearingT", bound=SingleHearing)


@dataclass(frozen=True, slots=True)
class PlainHearing:
    """A recognition outside a room, where nothing is known of the speaker. `glossary`: what the recogniser was told."""

    recognition: Recognition
    glossary: tuple[str, ...]

    def fault(self, *, speech_s: float) -> GuardReason | None:
        """Return why the text must be dropped, or None (`guards.judge`)."""
        return judge(self.recognition, speech_s=speech_s, glossary=self.glossary)


@dataclass(frozen=True, slots=True)
class Hearings(Generic[HearingT]):
    """The hearings of one sound. `was_doubtful`: the first text was to be heard again. `second`: None if it was not, or
    if the recogniser failed. `mended`: the second text is the one to use.
    """

    first: HearingT
    was_doubtful: bool = False
    second: HearingT | None = None
    mended: bool = False

    @property
    def used(self) -> HearingT:
        """The hearing with the text to use."""
        return self.second if self.mended and self.second is not None else self.first


def is_doubtful(recognition: Recognition, fault: GuardReason | None, *, speech_s: float) -> bool:
    """Return whether a sound is worth a second hearing. `fault`: what `guards.judge` says of the first text."""
    if fault is not None or is_sound_effect(recognition.text):
        return fault in _WORTH_ANOTHER
    unsure = speech_s < SHORT_S and recognition.mean_logprob < SURE_LOGPROB
    return unsure or not _fits(recognition.text, speech_s)


def is_mended(
    first: Recognition,
    second: Recognition,
    first_fault: GuardReason | None,
    second_fault: GuardReason | None,
    *,
    speech_s: float,
) -> bool:
    """Return whether the second text is the one to use. The faults are what `guards.judge` says of each text."""
    if second_fault is not None:
        return False
    if first_fault is not None:
        return second.mean_logprob > RESCUED_LOGPROB
    return second.mean_logprob > first.mean_logprob or not _fits(first.text, speech_s)


def _fits(text: str, speech_s: float) -> bool:
    """Return whether `text` has as many letters as its speech may have."""
    letters = letter_count("".join(filter(str.isalnum, text)))
    return speech_s < ONE_WORD_S or FEWEST_LETTERS_PER_S <= letters / speech_s <= MOST_LETTERS_PER_S


async def hear(
    recognise: Callable[[bool], Awaitable[HearingT]],
    guard: Callable[[HearingT], GuardReason | None],
    *,
    speech_s: float,
) -> Hearings[HearingT]:
    """Recognise a sound, and once more if its text is doubtful.

    `recognise`: gets whether to recognise carefully (`Recogniser.recognise`). `guard`: returns what `guards.judge` says
    of a text. `speech_s`: seconds of speech in the sound. Raises `RecogniserError` for the first hearing alone.
    """
    first = await recognise(False)
    if first.recognition is None:
        return Hearings(first)
    fault = guard(first)
    if not is_doubtful(first.recognition, fault, speech_s=speech_s):
        return Hearings(first)
    try:
        second = await recognise(True)
    except RecogniserError:
        return Hearings(first, was_doubtful=True)
    mended = second.recognition is not None and is_mended(
        first.recognition, second.recognition, fault, guard(second), speech_s=speech_s
    )
    return Hearings(first, was_doubtful=True, second=second, mended=mended)
