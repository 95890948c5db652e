"""How likely a recognised text ends a sentence, by the recogniser's own probabilities of its last mark.

Whisper writes a full stop after nearly all that it hears, also where somebody pauses within a sentence. But it is less
sure of it there: its probability of a mark that ends a sentence tells an end from a pause where the mark alone does
not. Marks are those of all languages; no word is looked at.

How likely Whisper leaves the mark out altogether depends on its prompt and not on the speech: without a glossary before
it, full stops at the same ends have 0.88 instead of 0.96. So where it writes a mark, this choice does not count.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

# One mark, perhaps with quotation marks or brackets behind it. An ellipsis trails off and ends nothing.
_SENTENCE_END = re.compile(r"""\s*[.!?。！？｡．؟۔।॥။።]["'”’»)\]」』]*""")
_END_OF_TEXT = "<|endoftext|>"
_MARK = re.compile(r"\s*[^\w\s]+")


class SentenceEnds:
    """Knows which tokens of a Whisper vocabulary end a sentence. `tokenizer`: the model's `tokenizers.Tokenizer`."""

    def __init__(self, tokenizer: Any) -> None:
        vocabulary = tokenizer.get_vocab()
        self._end_of_text = vocabulary[_END_OF_TEXT]
        texts = {number: tokenizer.decode([number]) for number in vocabulary.values()}
        self._marks = frozenset(number for number, text in texts.items() if _MARK.fullmatch(text))
        self._ends = np.array(sorted(number for number, text in texts.items() if _SENTENCE_END.fullmatch(text)))

    def probability(self, tokens: Sequence[int], logits: Sequence[Any]) -> float | None:
        """Return the probability (0-1) of a mark that ends a sentence at the end of `tokens`.

        `logits`: for each step its scores of the whole vocabulary; one more than tokens, for the end of the text. None:
        there is no text, or it was cut off before its end.
        """
        if not tokens or len(logits) <= len(tokens):
            return None
        # The mark that the text ends with, or the one that could have stood there.
        is_marked = tokens[-1] in self._marks
        scores = np.array(logits[len(tokens) - 1 if is_marked else len(tokens)], dtype=np.float32)
        shares = np.exp(scores - scores.max())
        if is_marked:
            # Whether a mark is written at all depends on the prompt.
            shares[self._end_of_text] = 0.0
        return float(shares[self._ends].sum() / shares.sum())
