"""Detects recognised texts that nobody said (hallucinations).

Whisper turns silence and noise into phrases of its training data, loops and guesses. Every rule has a reason code, so
operators can see which one applied. No rule looks at the meaning of a text.
"""

from __future__ import annotations

import re
import unicodedata
import zlib
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import StrEnum
from typing import TYPE_CHECKING

from voice.asr.glossary import repeats_alone
from voice.asr.unspaced import UNSPACED

if TYPE_CHECKING:
    from voice.asr.port import Recognition


# The longest phrase that was seen to loop. A whole sentence fits twice into the cap.
LONGEST_PHRASE_WORDS = 40
# Nobody repeats this many words exactly, so the repetition of a longer phrase may break off after them.
SURELY_REPEATED_WORDS = 8
# 'No, no' is no loop.
FEWEST_REPEATED_WORDS = 2


def compression_ratio(text: str) -> float:
    """Return the compression ratio of `text`. Above 2.4 the text repeats itself (Whisper's own measure)."""
    raw = text.encode()
    return len(raw) / len(zlib.compress(raw))


def remove_repetition(text: str) -> str:
    """Return `text` with the repeated phrase at its end kept once. The last repetition may be cut off.

    'Lobsters and lobsters Lobsters and lobsters Lobsters and lob' gives 'Lobsters and lobsters'.
    """
    words = text.split()
    keys = [word.strip(".,!?;:…").casefold() for word in words]
    for length in range(1, min(LONGEST_PHRASE_WORDS, len(words) - 1) + 1):
        kept = _before_repeats(keys, length)
        if kept is not None:
            return " ".join(words[:kept])
    return text


def _before_repeats(keys: list[str], length: int) -> int | None:
    """Return how many words to keep if the text ends with a repeated phrase of `length` words, else None."""
    end = len(keys)
    if keys[-1] != keys[-1 - length] and keys[-1 - length].startswith(keys[-1]):
        end -= 1  # the cap broke the last word off
    start = end
    while start > length and keys[start - 1] == keys[start - 1 - length]:
        start -= 1
    return start if end - start >= max(FEWEST_REPEATED_WORDS, min(length, SURELY_REPEATED_WORDS)) else None


# No word of any language has a letter this often in a row. People who draw a word out are written with three to five.
LETTER_RUN = 7
# A thousand billions have twelve zeros.
DIGIT_RUN = 14
# Laughter is written with up to ten syllables. A longer series of one syllable is the recogniser's loop.
SYLLABLE_LETTERS = 4
SYLLABLE_TIMES = 7
SYLLABLE_RUN_LETTERS = 24
# A text with fewer letters and digits among its visible signs than this is made of symbols.
MIN_WORD_SIGNS = 0.35
# Bytes that are no text become this sign; one alone may stand for a rare one.
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
MOST_REPLACEMENTS = 1
# Alphabets of which a word has one. Scripts that are used together (Japanese with Latin letters) are not among them.
SEPARATE_ALPHABETS = frozenset({"LATIN", "CYRILLIC", "GREEK", "ARABIC", "HEBREW", "ARMENIAN", "GEORGIAN", "DEVANAGARI"})
# One such word may be a name or a unit.
MIXED_WORDS = 2

_LETTER_RUN = re.compile(rf"([^\W\d_])\1{{{LETTER_RUN - 1},}}")
_DIGIT_RUN = re.compile(rf"(\d)\1{{{DIGIT_RUN - 1},}}")
_SYLLABLE_RUN = re.compile(rf"([^\W\d_]{{1,{SYLLABLE_LETTERS}}}?)\1{{{SYLLABLE_TIMES - 1},}}")


def is_gibberish(text: str) -> bool:
    """Return whether `text` cannot be anybody's words, whatever the language. An empty text is not gibberish."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return (
        _LETTER_RUN.search(folded) is not None
        or _DIGIT_RUN.search(folded) is not None
        or any(len(found.group()) >= SYLLABLE_RUN_LETTERS for found in _SYLLABLE_RUN.finditer(folded))
        or folded.count(REPLACEMENT) > MOST_REPLACEMENTS
        or _is_symbols(folded)
        or sum(_mixes_alphabets(word) for word in folded.split()) >= MIXED_WORDS
    )


def _is_symbols(text: str) -> bool:
    visible = [sign for sign in text if not sign.isspace()]
    return bool(visible) and sum(_is_word_sign(sign) for sign in visible) < MIN_WORD_SIGNS * len(visible)


def _is_word_sign(sign: str) -> bool:
    # Vowel signs of Indic scripts are marks (M), and as much of a word as letters.
    return unicodedata.category(sign)[0] in "LMN"


def _mixes_alphabets(word: str) -> bool:
    scripts = {unicodedata.name(sign, "").partition(" ")[0] for sign in word if sign.isalpha()}
    return len(scripts & SEPARATE_ALPHABETS) > 1


# Whisper's own thresholds.
MIN_MEAN_LOGPROB = -1.0
MAX_COMPRESSION_RATIO = 2.4
MAX_NO_SPEECH_PROBABILITY = 0.6
# Slow speech has about 8 characters a second. A few letters for seconds of sound are laughter or music.
MIN_CHARS_PER_S = 4.0
SPARSE_AFTER_S = 2.0
# One sign of a script without letters stands for about this many letters, a figure for those of its word, and a letter
# that is spelled for those of its name.
WIDE_CHARACTER_LETTERS = 3
FIGURE_LETTERS = 4
SPELLED_LETTERS = 3
# People say these phrases too, but clearly. A hallucinated phrase has a lower probability than this.
PHANTOM_MAX_LOGPROB = -0.5
PHANTOM_MIN_NO_SPEECH = 0.3
# A phrase that is repeated this often, and nothing else, is a loop too short for the compression ratio to show. A
# single word may be an insistent 'no, no, no, no'.
PHRASE_LOOPED_TIMES = 4
WORD_LOOPED_TIMES = 8
# When people repeat themselves word for word, they do it at once, and the recogniser is sure of the words.
REPEAT_MAX_LOGPROB = -0.5
REPEAT_WITHIN_S = 10.0

# A microphone near a loudspeaker returns the bot's words, some of them misheard. Shorter runs may be a person's: 'yes,
# at nine' is an answer, not an echo.
ECHO_WORDS = 4
ECHO_SHARE = 0.75
# In a script without spaces a word has about so many signs.
SIGNS_A_WORD = 2
_SIGN_OR_WORD = re.compile(rf"[{UNSPACED}]|[^\W_{UNSPACED}]+(?:['’-][^\W_{UNSPACED}]+)*")
_UNSPACED = re.compile(f"[{UNSPACED}]")
# What stands between the parts of a text that may be a loop: for a hum Whisper writes 'B-B-B-B' and 'O.O.O.O'.
_BETWEEN_PARTS = re.compile(r"[\s.\u2010-\u2013-]+")
# Single letters in a row: 'W-L-A-N', but neither the words of 'I need a' nor the 's' of 'it's'.
_SPELLED = re.compile(r"(?<![\w'’])[^\W\d_](?:[\s.,\u2010-\u2013-]+[^\W\d_](?![\w'’]))+")

# Texts that Whisper's checkpoints return for silence and music, from subtitles in the training data.
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
        # The same texts in the next most frequent languages of the training data.
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
    GIBBERISH = "gibberish"
    REPETITIVE = "repetitive"
    GLOSSARY = "glossary"
    TOO_SPARSE = "too_sparse"
    PHANTOM_PHRASE = "phantom_phrase"
    REPEATED = "repeated"
    OWN_VOICE = "own_voice"


@dataclass(frozen=True, slots=True)
class PreviousUtterance:
    """The same person's last utterance, and how many seconds ago it ended."""

    text: str
    ago_s: float


def judge(
    recognition: Recognition,
    *,
    speech_s: float,
    before: PreviousUtterance | None = None,
    own_words: str = "",
    glossary: tuple[str, ...] = (),
) -> GuardReason | None:
    """Return why `recognition` must be dropped, or None if it is credible.

    `speech_s`: seconds of speech in the utterance, without pre-roll and tail. `own_words`: what the bot itself was
    saying at that time. `glossary`: the names and words that the recogniser was told to expect. It repeats them for a
    hum, a breath or a name that it does not know, and members choose what they are called.
    """
    text = recognition.text.strip()
    spoken = _spoken(text)
    if not spoken:
        return GuardReason.EMPTY
    logprob, no_speech = recognition.mean_logprob, recognition.no_speech_probability
    if logprob < MIN_MEAN_LOGPROB:
        return GuardReason.NO_SPEECH if no_speech > MAX_NO_SPEECH_PROBABILITY else GuardReason.LOW_CONFIDENCE
    if is_gibberish(text):
        return GuardReason.GIBBERISH
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
    # Last: another hearing may spell the bot's own words differently, so that they are no echo.
    if repeats_alone(text, glossary):
        return GuardReason.GLOSSARY
    return None


def is_echo(text: str, own_words: str) -> bool:
    """Return whether most of `text` occurs in `own_words`, in the same order."""
    signs = len(_UNSPACED.findall(text))
    heard, own = (_SIGN_OR_WORD.findall(said) if signs else said.split() for said in map(_spoken, (text, own_words)))
    if len(heard) - signs + signs / SIGNS_A_WORD < ECHO_WORDS:
        return False
    # An echo loses words, and some of its words are misheard. A single matching word is chance.
    chance = SIGNS_A_WORD if signs else 1
    blocks = SequenceMatcher(None, heard, own, autojunk=False).get_matching_blocks()
    same = sum(block.size for block in blocks if block.size > chance)
    return same >= ECHO_SHARE * len(heard)


def _spoken(text: str) -> str:
    """Return `text` as it sounds: lower case, no punctuation around words, single spaces; empty without words."""
    words = (word.strip('.,!?;:…"()[]-–—♪。、！？ ') for word in text.casefold().split())
    return " ".join(word for word in words if word)


def _is_loop(spoken: str) -> bool:
    words = _BETWEEN_PARTS.split(spoken)
    if all(map(str.isdecimal, words)):
        # Who says a number may repeat a figure. A loop of them is longer, and shows in the compression ratio.
        return False
    for length in range(1, len(words) // PHRASE_LOOPED_TIMES + 1):
        times, rest = divmod(len(words), length)
        if rest == 0 and words == words[:length] * times:
            return times >= (PHRASE_LOOPED_TIMES if length > 1 else WORD_LOOPED_TIMES)
    return False


def letter_count(text: str) -> int:
    """Return the number of letters in `text`. A figure, a sign of a script without letters, and the first time each
    letter that is spelled counts as several.
    """
    spelled = set(filter(str.isalpha, "".join(_SPELLED.findall(text.casefold()))))
    return sum(map(_letters, text)) + len(spelled) * (SPELLED_LETTERS - 1)


def _letters(sign: str) -> int:
    if sign.isdecimal():
        return FIGURE_LETTERS
    return WIDE_CHARACTER_LETTERS if unicodedata.east_asian_width(sign) in "WF" else 1
