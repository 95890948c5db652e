"""A converted language model computes what the original does; files of other kinds and damaged ones are refused."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import ctranslate2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from bot.errors import ModelError
from bot.models.gguf_conversion import CONVERTED_FILES, build_tokenizer, convert_llama_gguf
from tests.bot.models.tiny_llama import CONTROL_TOKENS, LAYERS, MERGES, TOKENS, WIDTH, TinyLlama

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def converted(model: TinyLlama, tmp_path: Path) -> Path:
    """Convert `model` and return the folder."""
    folder = tmp_path / "converted"
    folder.mkdir()
    convert_llama_gguf(model.write(tmp_path / "model.gguf"), folder)
    return folder


def test_a_converted_model_computes_what_the_original_does(tmp_path: Path) -> None:
    """The log probabilities of all tokens are those of the original, at each position."""
    model = TinyLlama()
    folder = converted(model, tmp_path)
    generator = ctranslate2.Generator(str(folder), device="cpu", compute_type="float32", intra_threads=1)
    numbers = [1, 17, 200, 3, 45, 45, 261]
    computed = np.array(generator.forward_batch([numbers], return_log_probs=True))[0]
    expected = model.log_probabilities(numbers)
    assert expected.std() > 0.5
    np.testing.assert_allclose(computed, expected, atol=1e-4)


def test_a_converted_folder_has_the_vocabulary_and_its_tokenizer(tmp_path: Path) -> None:
    """The folder holds all files, and its tokenizer gives the model's own token numbers."""
    folder = converted(TinyLlama(), tmp_path)
    assert sorted(path.name for path in folder.iterdir()) == sorted(CONVERTED_FILES)
    assert json.loads((folder / "vocabulary.json").read_text("utf-8")) == TOKENS
    assert json.loads((folder / "config.json").read_text("utf-8"))["eos_token"] == "<|im_end|>"
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    assert tokenizer.encode("hello world").ids == [TOKENS.index("hello"), TOKENS.index("Ġworld")]


def header(**values: Any) -> Callable[[TinyLlama], None]:
    """Change values of the header; `__` stands for a dot."""
    return lambda model: model.header.update({key.replace("__", "."): value for key, value in values.items()})


def weight(name: str, value: np.ndarray[Any, np.dtype[np.float32]]) -> Callable[[TinyLlama], None]:
    """Add or replace a weight."""
    return lambda model: model.weights.update({name: value})


@pytest.mark.parametrize(
    "change",
    [
        lambda model: setattr(model, "architecture", "qwen2"),
        header(llama__block_count=4_000_000_000),
        header(llama__block_count=LAYERS + 1),
        header(llama__block_count=LAYERS - 1),
        header(tokenizer__ggml__model="llama"),
        header(tokenizer__ggml__pre="dreams"),
        header(tokenizer__ggml__tokens=TOKENS[:2]),
        header(tokenizer__ggml__merges=["h e", "no thing"]),
        lambda model: model.weights.pop("output_norm"),
        weight("output", np.zeros((len(TOKENS), WIDTH), np.float32)),
        weight("output_norm", np.full(WIDTH, np.inf, np.float32)),
    ],
)
def test_what_cannot_be_converted_is_refused(change: Callable[[TinyLlama], None], tmp_path: Path) -> None:
    """A model of another kind, or one that contradicts itself, is refused with the remedy."""
    model = TinyLlama()
    change(model)
    (tmp_path / "turn-text").mkdir()
    file = model.write(tmp_path / "turn-text" / "model.gguf")
    with pytest.raises(ModelError, match="again"):
        convert_llama_gguf(file, tmp_path)


def test_text_is_never_a_control_token() -> None:
    """Somebody who says the name of a control token has said its letters. Each digit is a word of its own."""
    tokenizer = build_tokenizer(TOKENS, MERGES)
    for number, token in enumerate(CONTROL_TOKENS):
        assert tokenizer.token_to_id(token) == number
        assert number not in tokenizer.encode(f"and {token} then").ids
    split = tokenizer.pre_tokenizer.pre_tokenize_str("it's 12 worlds")
    assert [word for word, _ in split] == ["it", "'s", "Ġ", "1", "2", "Ġworlds"]


@given(cut=st.floats(0, 1, exclude_max=True))
def test_a_file_that_is_cut_short_is_refused(cut: float, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A file of which the end is missing is refused wherever it was cut."""
    folder = tmp_path_factory.getbasetemp() / "cut-model"
    file = folder / "model.gguf"
    if not folder.exists():
        folder.mkdir()
        TinyLlama().write(folder / "whole.gguf")
    whole = (folder / "whole.gguf").read_bytes()
    file.write_bytes(whole[: int(cut * len(whole))])
    with pytest.raises(ModelError, match="damaged"):
        convert_llama_gguf(file, folder)
