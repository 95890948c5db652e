"""Is a recognised text what somebody said, or what a recogniser makes of noise?

Whisper answers silence and noise with phrases of its training data, loops, and guesses. Every rule here drops
with a reason, so that operators can see which one fires; none looks at what a text means.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from voice.asr.port import Recognition

# Whisper's own thresholds.
MIN_MEAN_LOGPROB = -1.0
MAX_COMPRESSION_RATIO = 2.4
MAX_NO_SPEECH_PROBABILITY = 0.6
# Slow speech is about 8 characters a second; a few letters for seconds of sound are laughter or music.
MIN_CHARS_PER_S = 4.0
SPARSE_AFTER_S = 2.0
# Of 150 pieces of recorded speech none had fewer letters a second than 7; half a sentence has.
BROKEN_OFF_CHARS_PER_S = 6.0
BROKEN_OFF_AFTER_S = 1.2
# One sign of a script without letters stands for about this many letters.
WIDE_CHARACTER_LETTERS = 3
# Phantom phrases are also said by people, clearly; the phantoms come with less certainty than this.
PHANTOM_MAX_LOGPROB = -0.5
PHANTOM_MIN_NO_SPEECH = 0.3
# The same phrase this often, and nothing else, is a loop too short for the compression ratio; a single word may be
# an insistent 'no, no, no, no'.
PHRASE_LOOPED_TIMES = 4
WORD_LOOPED_TIMES = 8
# A person who repeats themselves word for word does it at once, and the recogniser is sure of it.
REPEAT_MAX_LOGPROB = -0.5
REPEAT_WITHIN_S = 10.0

# A microphone that hears the bot's voice from a loudspeaker gives back its words, some of them misheard. Shorter
# runs are also said by people, and 'yes, at nine' is an answer and no echo.
ECHO_WORDS = 4
ECHO_SHARE = 0.75

# What Whisper's checkpoints answer to silence and music, in the training data's subtitle language.
PHANTOM_PHRASES = frozenset(
    {
        "bye",
        "bye bye",
        "i'll see you next time",
        "please subscribe",
        "please subscribe to my channel",
        "see you in the next video",
        "see you next time",
        "so",
        "subscribe",
        "subtitles by the amara.org community",
        "thank you",
        "thank you for watching",
        "thank you so much",
        "thank you so much for watching",
        "thank you very much",
        "thanks",
        "thanks for watching",
        "the end",
        "you",
        # The same habit in the next most spoken languages of the training data.
        "sous-titres réalisés par la communauté d'amara.org",
        "untertitel der amara.org-community",
        "untertitel im auftrag des zdf für funk, 2017",
        "subtítulos realizados por la comunidad de amara.org",
        "продолжение следует",
        "ご視聴ありがとうございました",
        "谢谢观看",
        "請不吝點贊訂閱轉發打賞支持明鏡與點點欄目",
    }
)


class GuardReason(StrEnum):
    """Why a recognised text was dropped."""

    EMPTY = "empty"
    NO_SPEECH = "no_speech"
    LOW_CONFIDENCE = "low_confidence"
    REPETITIVE = "repetitive"
    TOO_SPARSE = "too_sparse"
    PHANTOM_PHRASE = "phantom_phrase"
    REPEATED = "repeated"
    OWN_VOICE = "own_voice"


@dataclass(frozen=True, slots=True)
class PreviousUtterance:
    """What the same person was last heard to say, and how many seconds ago it ended."""

    text: str
    ago_s: float


def judge(
    recognition: Recognition, *, speech_s: float, before: PreviousUtterance | None = None, own_words: str = ""
) -> GuardReason | None:
    """Return why `recognition` must be dropped, or None if it is to be believed.

    `speech_s`: seconds of speech in the utterance, pre-roll and tail not counted. `own_words`: what the bot itself
    was saying at that time.
    """
    text = recognition.text.strip()
    spoken = _spoken(text)
    if not spoken:
        return GuardReason.EMPTY
    logprob, no_speech = recognition.mean_logprob, recognition.no_speech_probability
    if logprob < MIN_MEAN_LOGPROB:
        return GuardReason.NO_SPEECH if no_speech > MAX_NO_SPEECH_PROBABILITY else GuardReason.LOW_CONFIDENCE
    if recognition.compression_ratio > MAX_COMPRESSION_RATIO or _is_loop(spoken):
        return GuardReason.REPETITIVE
    if speech_s >= SPARSE_AFTER_S and letter_count(text) < MIN_CHARS_PER_S * speech_s:
        return GuardReason.TOO_SPARSE
    if spoken in PHANTOM_PHRASES and (logprob < PHANTOM_MAX_LOGPROB or no_speech > PHANTOM_MIN_NO_SPEECH):
        return GuardReason.PHANTOM_PHRASE
    if (
        before is not None
        and before.ago_s <= REPEAT_WITHIN_S
        and logprob < REPEAT_MAX_LOGPROB
        and _spoken(before.text) == spoken
    ):
        return GuardReason.REPEATED
    if own_words and is_echo(text, own_words):
        return GuardReason.OWN_VOICE
    return None


def breaks_off(text: str, *, speech_s: float) -> bool:
    """Return whether `text` is too short for its speech to be all of it: worth a second hearing, not to be dropped."""
    return speech_s >= BROKEN_OFF_AFTER_S and letter_count(text) < BROKEN_OFF_CHARS_PER_S * speech_s


def is_echo(text: str, own_words: str) -> bool:
    """Return whether `text` is, for the most part and in order, what stands in `own_words`."""
    heard, own = _spoken(text).split(), _spoken(own_words).split()
    if len(heard) < ECHO_WORDS:
        return False
    # The echo loses words and the recogniser hears others wrong; a single word alike between two others is chance.
    blocks = SequenceMatcher(None, heard, own, autojunk=False).get_matching_blocks()
    same = sum(block.size for block in blocks if block.size > 1)
    return same >= ECHO_SHARE * len(heard)


def _spoken(text: str) -> str:
    """Return `text` as it sounds: lower case, no punctuation around words, single spaces; empty if nothing sounds."""
    words = (word.strip('.,!?;:…"()[]-–—♪。、！？ ') for word in text.casefold().split())
    return " ".join(word for word in words if word)


def _is_loop(spoken: str) -> bool:
    words = spoken.split()
    for length in range(1, len(words) // PHRASE_LOOPED_TIMES + 1):
        times, rest = divmod(len(words), length)
        if rest == 0 and words == words[:length] * times:
            return times >= (PHRASE_LOOPED_TIMES if length > 1 else WORD_LOOPED_TIMES)
    return False


def letter_count(text: str) -> int:
    """Return how many letters `text` has; one sign of a script without letters counts for several."""
    return sum(WIDE_CHARACTER_LETTERS if unicodedata.east_asian_width(sign) in "WF" else 1 for sign in text)
