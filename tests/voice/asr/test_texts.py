"""What is told of a recognised text: loops, gibberish, described sounds, ends of words and of sentences."""

from __future__ import annotations

import math
import tomllib
import unicodedata
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voice.asr.guards import compression_ratio, is_gibberish, remove_repetition
from voice.asr.sentence_ends import SentenceEnds
from voice.asr.sound_effect import is_sound_effect
from voice.asr.unspaced import word_ends

CASES = tomllib.loads((Path(__file__).parent / "gibberish_cases.toml").read_text("utf-8"))


@pytest.mark.parametrize("part", ["tuning", "apart"])
def test_gibberish_is_found_and_nothing_that_people_say(part: str) -> None:
    """Runs of one letter or syllable, mixed alphabets, broken signs and mere symbols are found. Names, laughter,
    drawn-out words, numbers and words full of consonants pass in every language of the table: what somebody said is
    never dropped.
    """
    cases = CASES[part]
    assert [text for text in cases["real"] if is_gibberish(text)] == []
    assert [text for text in cases["gibberish"] if not is_gibberish(text)] == []


@given(st.text(max_size=40))
def test_any_text_gets_an_answer(text: str) -> None:
    """No text raises an error, and a text with a run of one letter is gibberish whatever stands around it."""
    is_gibberish(text)
    assert is_gibberish(f"{text} nnnnnnnnn")


def test_a_hostile_text_is_judged_in_linear_work() -> None:
    """A text of 10,000 letters that almost repeats is answered: the search does not go back for every length."""
    assert not is_gibberish("abcde" * 2_000 + "x")


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Lobsters and lobsters Lobsters and lobsters Lobsters and lob", "Lobsters and lobsters"),
        ("We leave at nine. We leave at nine. We leave at nine.", "We leave at nine."),
        ("no no no no no", "no"),
        ("so then a b a b a b a", "so then a b"),
        (
            "one two three four five six seven eight nine ten " * 2 + "one tw",
            "one two three four five six seven eight nine ten",
        ),
        (
            "it is now given to one in cases of a b c it is now given to one in cases o",
            "it is now given to one in cases of a b c",
        ),
        ("I said no, no", "I said no, no"),
        ("we leave at nine", "we leave at nine"),
        ("and the and", "and the and"),
        ("word", "word"),
        ("", ""),
    ],
)
def test_loops(text: str, kept: str) -> None:
    """A repeated phrase is kept once, without an incomplete last repetition. Other text is unchanged."""
    assert remove_repetition(text) == kept


@given(st.lists(st.sampled_from(["yes", "no", "nine", "we"]), max_size=40).map(" ".join))
def test_what_is_kept_is_the_beginning(text: str) -> None:
    kept = remove_repetition(text)
    assert text.startswith(kept)
    assert bool(kept) == bool(text)


def test_compression_ratio() -> None:
    """Repeated text has a higher compression ratio than an ordinary sentence."""
    assert compression_ratio("We leave at nine.") < 1.5
    assert compression_ratio("we leave " * 20) > 2.4


@pytest.mark.parametrize("text", ["[laughter]", "(coughs)", "*sighs*", "♪ humming ♪", " [door closes]. "])
def test_a_described_sound_is_an_effect(text: str) -> None:
    """A text that is only a description in brackets, asterisks or note signs is a sound effect."""
    assert is_sound_effect(text)


@pytest.mark.parametrize("text", ["Ha ha ha!", "I said (twice) no.", "[laughter] Oh dear.", "", "[]", "(a) and (b)"])
def test_words_are_no_effect(text: str) -> None:
    """A text with spoken words is no sound effect, even if it has brackets."""
    assert not is_sound_effect(text)


# The blocks of these scripts in which signs have marks.
MARKED = "".join(
    map(chr, (*range(0x0E00, 0x0F00), *range(0x1000, 0x10A0), *range(0x1780, 0x1800), *range(0x3040, 0x3100)))
)


def is_mark(sign: str) -> bool:
    return unicodedata.category(sign) in {"Mn", "Mc"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Good evening, all.", ["Good", " evening,", " all."]),
        ("今晚好。", ["今晚", "好。"]),
        ("ขอบคุณที่มา", ["ขอ", "บคุ", "ณที่", "มา"]),
        ("မြန်မာ", ["မြန်", "မာ"]),
        ("ភាសាខ្មែរ", ["ភាសា", "ខ្មែ", "រ"]),
    ],
)
def test_two_signs_with_their_marks_are_a_word(text: str, words: list[str]) -> None:
    ends = [0, *word_ends(text)]
    assert [text[start:end] for start, end in pairwise(ends)] == words


@given(st.text(alphabet=MARKED, max_size=60))
def test_no_sign_is_cut_from_its_marks(text: str) -> None:
    ends = list(word_ends(text))
    assert ends == sorted(set(ends))
    assert not any(is_mark(text[end]) for end in ends if end < len(text))


TEXTS = [" so", " I", ".", ",", "?", "...", '."', "。", " 3", "<|endoftext|>"]
FULL_STOP, COMMA, QUESTION, SO = 2, 3, 4, 0


class Vocabulary:
    def get_vocab(self) -> dict[str, int]:
        return {text: number for number, text in enumerate(TEXTS)}

    def decode(self, tokens: list[int]) -> str:
        return "".join(TEXTS[token] for token in tokens)


def _scores(**shares: float) -> list[float]:
    """Return logits in which each named token has its share, and all others next to nothing."""
    named = {"stop": 2, "comma": 3, "question": 4, "dots": 5, "quoted": 6, "cjk": 7, "end": 9}
    logits = [-30.0] * len(TEXTS)
    for name, share in shares.items():
        logits[named[name]] = math.log(share)
    return logits


OTHER = [0.0] * len(TEXTS)


@pytest.mark.parametrize(
    ("tokens", "last", "end", "expected"),
    [
        # The mark is there: what else could have stood in its place?
        ([SO, FULL_STOP], _scores(stop=0.7, comma=0.3), OTHER, 0.7),
        ([SO, FULL_STOP], _scores(stop=0.5, question=0.2, quoted=0.1, cjk=0.1, dots=0.1), OTHER, 0.9),
        ([SO, COMMA], _scores(stop=0.2, comma=0.6, dots=0.2), OTHER, 0.2),
        # There is none: how likely was one?
        ([SO], OTHER, _scores(stop=0.1, end=0.9), 0.1),
    ],
)
def test_the_probability_is_that_of_all_marks_that_end_a_sentence(
    tokens: list[int], last: list[float], end: list[float], expected: float
) -> None:
    """Full stops, question and exclamation marks of any script count together; commas and ellipses do not."""
    logits = [OTHER] * (len(tokens) - 1) + ([last, end] if tokens[-1] != SO else [OTHER, end])
    assert SentenceEnds(Vocabulary()).probability(tokens, logits) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("left_out", [0.0, 0.07, 0.3])
def test_a_mark_counts_the_same_however_often_marks_are_left_out(left_out: float) -> None:
    """A prompt makes Whisper write more marks or fewer; where one stands, only what else could stand there counts."""
    written = 1 - left_out
    last = _scores(stop=0.8 * written, comma=0.2 * written, end=max(left_out, 1e-9))
    assert SentenceEnds(Vocabulary()).probability([SO, FULL_STOP], [OTHER, last, OTHER]) == pytest.approx(0.8, abs=1e-4)


def test_what_was_cut_off_is_unknown() -> None:
    """Without text, or with as many steps as tokens, nothing is known of the end."""
    ends = SentenceEnds(Vocabulary())
    assert ends.probability([], [OTHER]) is None
    assert ends.probability([SO, FULL_STOP], [OTHER, OTHER]) is None
