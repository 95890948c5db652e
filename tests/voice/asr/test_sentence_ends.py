"""How likely a recognised text ends a sentence."""

from __future__ import annotations

import math

import pytest

from voice.asr.sentence_ends import SentenceEnds

TEXTS = [" so", " I", ".", ",", "?", "...", '."', "。", " 3", "<|endoftext|>"]
FULL_STOP, COMMA, QUESTION, SO = 2, 3, 4, 0


class Vocabulary:
    """A tokenizer with a few tokens."""

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
