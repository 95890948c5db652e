"""The tokenizer of a GGUF file: every text comes back, and what people say is never a control token."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bot.models.gguf_file import build_tokenizer
from tests.bot.models.tiny_llama import CONTROL_TOKENS, default_header

TOKENIZER = build_tokenizer(default_header())


@given(text=st.text(st.characters(exclude_categories=["Cs"]), max_size=40))
def test_every_text_comes_back(text: str) -> None:
    """Encoding and decoding gives the same text."""
    assert TOKENIZER.decode(TOKENIZER.encode(text).ids) == text


def test_digits_are_single_tokens() -> None:
    """SmolLM's rule: each digit is a word of its own, and a space stays with the word after it."""
    split = TOKENIZER.pre_tokenizer.pre_tokenize_str("it's 12 worlds")
    assert [word for word, _ in split] == ["it", "'s", "Ġ", "1", "2", "Ġworlds"]


def test_text_is_never_a_control_token() -> None:
    """Somebody who says the name of a control token has said its letters."""
    for number, token in enumerate(CONTROL_TOKENS):
        assert TOKENIZER.token_to_id(token) == number
        assert number not in TOKENIZER.encode(f"and {token} then").ids
