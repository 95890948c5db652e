"""Whisper's tokenizer with all of its merges.

Its tokens are bytes, and after these one for each merge of two other tokens, in order. Converted models lack the first
merge, which joins a space and a 't'. Without it ' that' becomes two tokens that Whisper has never seen together, and a
glossary with such a word makes wrong words likelier.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from tokenizers import Tokenizer

if TYPE_CHECKING:
    from pathlib import Path

# 'Ġ' stands for a space.
_FIRST: Final = ("Ġ", "t")


def whole_tokenizer(file: Path) -> Tokenizer:
    """Return the tokenizer that a model's `tokenizer.json` describes. Raises what `tokenizers` and `json` raise."""
    described = json.loads(file.read_text("utf-8"))
    bpe = described["model"]
    merges = bpe["merges"]
    # A merge is written as one text in older files, and as a pair in newer ones.
    first = " ".join(_FIRST) if merges and isinstance(merges[0], str) else [*_FIRST]
    if "".join(_FIRST) in bpe["vocab"] and first not in merges:
        merges.insert(0, first)
    tokenizer: Tokenizer = Tokenizer.from_str(json.dumps(described))
    return tokenizer
