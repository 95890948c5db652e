"""A converted model has the bytes that whisper.cpp reads, with the weights of the original."""

from __future__ import annotations

import json
import runpy
import struct
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from faster_whisper.feature_extractor import FeatureExtractor

from benchmarks.asr.ctranslate2_weights import read_weights
from benchmarks.asr.ggml_model import convert, ggml_tensors, keep_ggml_model, read_vocabulary
from benchmarks.errors import ModelFormatError
from tests.benchmarks.asr.made_up_model import (
    MELS,
    SOUND,
    TEXT,
    TOKENIZER,
    TOKENS,
    WIDTH,
    WORDS,
    made_up_variables,
    write_model,
)

if TYPE_CHECKING:
    from pathlib import Path

    Array = np.ndarray[Any, np.dtype[Any]]

# The tensors of whisper.cpp (`ASR_TENSOR_NAMES`), in the order of the file.
_OF_LAYER = (
    *("attn_ln.weight", "attn_ln.bias", "attn.query.weight", "attn.query.bias", "attn.key.weight"),
    *("attn.value.weight", "attn.value.bias", "attn.out.weight", "attn.out.bias"),
    *("mlp_ln.weight", "mlp_ln.bias", "mlp.0.weight", "mlp.0.bias", "mlp.2.weight", "mlp.2.bias"),
)
_OF_CROSS_ATTENTION = (
    *("cross_attn_ln.weight", "cross_attn_ln.bias", "cross_attn.query.weight", "cross_attn.query.bias"),
    *("cross_attn.key.weight", "cross_attn.value.weight", "cross_attn.value.bias"),
    *("cross_attn.out.weight", "cross_attn.out.bias"),
)
NAMES = [
    "encoder.positional_embedding",
    *(f"encoder.{conv}.{part}" for conv in ("conv1", "conv2") for part in ("weight", "bias")),
    *(f"encoder.blocks.0.{name}" for name in _OF_LAYER),
    *("encoder.ln_post.weight", "encoder.ln_post.bias"),
    *("decoder.positional_embedding", "decoder.token_embedding.weight"),
    *(f"decoder.blocks.0.{name}" for name in (*_OF_LAYER, *_OF_CROSS_ATTENTION)),
    *("decoder.ln.weight", "decoder.ln.bias"),
]


def _tensor(name: str, dimensions: tuple[int, ...], values: Array) -> bytes:
    """Return a tensor as whisper.cpp reads it: float16 has the type 1, the fastest dimension is first."""
    kind = 1 if values.dtype == np.float16 else 0
    head = struct.pack("<3i", len(dimensions), len(name), kind) + struct.pack(f"<{len(dimensions)}i", *dimensions)
    return head + name.encode() + values.tobytes()


def test_a_converted_model_is_byte_for_byte_what_whisper_cpp_reads(tmp_path: Path) -> None:
    """First the sizes, the mel filters and the words with their lengths, then the tensors, and nothing after them."""
    variables = made_up_variables()
    convert(write_model(tmp_path, variables), tmp_path / "model.ggml")
    others = list(ggml_tensors(read_weights(tmp_path / "model.bin")))[3:]
    assert (tmp_path / "model.ggml").read_bytes() == b"".join(
        (
            b"lmgg",
            struct.pack("<5i", TOKENS, SOUND, WIDTH, 1, 1),
            struct.pack("<4i", TEXT, WIDTH, 1, 1),
            struct.pack("<2i", MELS, 1),
            struct.pack("<2i", MELS, 201),
            FeatureExtractor(feature_size=MELS).mel_filters.astype(np.float32).tobytes(),
            struct.pack("<i", len(WORDS)),
            *(struct.pack("<i", len(word)) + word for word in WORDS),
            _tensor(NAMES[0], (WIDTH, SOUND), variables["encoder/position_encodings/encodings"]),
            _tensor(NAMES[1], (3, MELS, WIDTH), variables["encoder/conv1/weight"].astype(np.float16)),
            _tensor(NAMES[2], (1, WIDTH), variables["encoder/conv1/bias"]),
            *(_tensor(one.name, one.values.shape[::-1], one.values) for one in others),
        )
    )


def test_every_tensor_is_there_under_its_name_with_its_type(tmp_path: Path) -> None:
    """Matrices are float16; positions, norms and biases are float32; nothing is missing and nothing is too much."""
    tensors = list(ggml_tensors(read_weights(write_model(tmp_path) / "model.bin")))
    assert [one.name for one in tensors] == NAMES
    matrices = {one.name for one in tensors if one.values.dtype == np.float16}
    assert matrices == {name for name in NAMES if name.endswith(".weight") and "ln" not in name}


@pytest.mark.parametrize(
    ("name", "variable", "rows"),
    [
        ("encoder.blocks.0.attn.query.weight", "encoder/layer_0/self_attention/linear_0/weight", slice(0, 2)),
        ("encoder.blocks.0.attn.key.weight", "encoder/layer_0/self_attention/linear_0/weight", slice(2, 4)),
        ("encoder.blocks.0.attn.value.bias", "encoder/layer_0/self_attention/linear_0/bias", slice(4, 6)),
        ("decoder.blocks.0.attn.query.bias", "decoder/layer_0/self_attention/linear_0/bias", slice(0, 2)),
        ("decoder.blocks.0.cross_attn.query.weight", "decoder/layer_0/attention/linear_0/weight", slice(None)),
        ("decoder.blocks.0.cross_attn.key.weight", "decoder/layer_0/attention/linear_1/weight", slice(0, 2)),
        ("decoder.blocks.0.cross_attn.value.weight", "decoder/layer_0/attention/linear_1/weight", slice(2, 4)),
        ("decoder.blocks.0.cross_attn.out.bias", "decoder/layer_0/attention/linear_2/bias", slice(None)),
        ("decoder.blocks.0.cross_attn_ln.weight", "decoder/layer_0/attention/layer_norm/gamma", slice(None)),
        ("decoder.blocks.0.mlp.2.weight", "decoder/layer_0/ffn/linear_1/weight", slice(None)),
        ("encoder.ln_post.bias", "encoder/layer_norm/beta", slice(None)),
    ],
)
def test_a_tensor_has_the_values_of_its_part(name: str, variable: str, rows: slice, tmp_path: Path) -> None:
    """What CTranslate2 joins is taken apart: query, key and value."""
    variables = made_up_variables()
    weights = read_weights(write_model(tmp_path, variables) / "model.bin")
    found = {one.name: one.values for one in ggml_tensors(weights)}
    np.testing.assert_array_equal(found[name], variables[variable][rows])


def test_quantised_weights_are_multiplied_out(tmp_path: Path) -> None:
    """The embeddings, which are int8, become what CTranslate2 computes with."""
    found = {one.name: one.values for one in ggml_tensors(read_weights(write_model(tmp_path) / "model.bin"))}
    expected = [[-6, -5], [-2, -1.5], [-0.5, -0.25], [0, 0.125], [0.125, 0.1875], [0.125, 0.15625]]
    np.testing.assert_array_equal(found["decoder.token_embedding.weight"], np.array(expected, np.float16))


def test_words_are_bytes_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    """GPT-2's letters become bytes, a number without a word gets an empty one, and special words are left out."""
    assert read_vocabulary(write_model(tmp_path) / "tokenizer.json") == WORDS


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{}",
        json.dumps({**TOKENIZER, "model": {"vocab": ["a"]}}),
        json.dumps({**TOKENIZER, "added_tokens": [5]}),
        json.dumps({"model": {"vocab": {"a": 0}}, "added_tokens": []}),
        json.dumps({"model": {"vocab": {"\u4e2d": 0, "<|endoftext|>": 1}}, "added_tokens": []}),
        json.dumps({"model": {"vocab": {"a": 0, "<|endoftext|>": "1"}}, "added_tokens": []}),
    ],
)
def test_another_tokenizer_is_a_plain_sentence(content: str, tmp_path: Path) -> None:
    """A file that is no tokenizer of a Whisper model is refused."""
    (tmp_path / "tokenizer.json").write_text(content, "utf-8")
    with pytest.raises(ModelFormatError, match="is no tokenizer of a Whisper model"):
        read_vocabulary(tmp_path / "tokenizer.json")


@pytest.mark.parametrize("missing", sorted(set(made_up_variables()) - {"decoder/embeddings/weight_scale"}))
def test_a_model_without_one_of_its_variables_is_refused(missing: str, tmp_path: Path) -> None:
    """Half a model is never written."""
    variables = made_up_variables()
    del variables[missing]
    model = write_model(tmp_path / "model", variables)
    with pytest.raises(ModelFormatError, match="has no "):
        convert(model, tmp_path / "model.ggml")
    assert not list(tmp_path.glob("*.ggml*"))


@pytest.mark.parametrize(
    ("variable", "values", "sentence"),
    [
        ("encoder/layer_0/self_attention/linear_0/bias", np.zeros(5, np.float32), "the sizes of encoder/layer_0"),
        ("decoder/layer_0/ffn/linear_0/weight", np.full((8, 2), 1e6, np.float32), "too large for float16"),
        ("encoder/conv1/weight", np.zeros((2, 4), np.float32), r"conv1/weight has the shape \(2, 4\)"),
    ],
)
def test_a_model_with_wrong_values_is_refused(variable: str, values: Array, sentence: str, tmp_path: Path) -> None:
    """Shapes that do not fit and values that float16 has not are named, and nothing is written."""
    model = write_model(tmp_path / "model", {**made_up_variables(), variable: values})
    with pytest.raises(ModelFormatError, match=sentence):
        convert(model, tmp_path / "model.ggml")
    assert not list(tmp_path.glob("*.ggml*"))


def test_a_model_is_converted_once(tmp_path: Path) -> None:
    """A second call takes the file that is there; another model gets a file of its own."""
    model = write_model(tmp_path / "model")
    first = keep_ggml_model(model, tmp_path / "kept")
    first.file.write_bytes(b"as it was")
    assert keep_ggml_model(model, tmp_path / "kept") == first
    assert first.file.read_bytes() == b"as it was"
    variables = {**made_up_variables(), "encoder/conv1/bias": np.ones(WIDTH, np.float32)}
    second = keep_ggml_model(write_model(tmp_path / "other", variables), tmp_path / "kept")
    assert second.file != first.file
    assert first.stored_as == "int8"


def test_a_folder_that_cannot_be_written_is_a_plain_sentence(tmp_path: Path) -> None:
    """A file where the folder should be is named."""
    model = write_model(tmp_path / "model")
    (tmp_path / "kept").write_text("")
    with pytest.raises(ModelFormatError, match="cannot be written"):
        keep_ggml_model(model, tmp_path / "kept")


def test_the_program_converts_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`python -m benchmarks.asr.ggml_model DIR FILE` writes what `convert` writes."""
    model, file = write_model(tmp_path / "model"), tmp_path / "model.ggml"
    monkeypatch.setattr(sys, "argv", ["benchmarks.asr.ggml_model", str(model), str(file)])
    monkeypatch.delitem(sys.modules, "benchmarks.asr.ggml_model")
    runpy.run_module("benchmarks.asr.ggml_model", run_name="__main__")
    convert(model, tmp_path / "again.ggml")
    assert file.read_bytes() == (tmp_path / "again.ggml").read_bytes()


def test_the_program_says_why_it_cannot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder without a model ends it with the sentence."""
    monkeypatch.setattr(sys, "argv", ["benchmarks.asr.ggml_model", str(tmp_path), str(tmp_path / "model.ggml")])
    monkeypatch.delitem(sys.modules, "benchmarks.asr.ggml_model")
    with pytest.raises(SystemExit, match=r"model\.bin cannot be read"):
        runpy.run_module("benchmarks.asr.ggml_model", run_name="__main__")


@pytest.mark.slow
def test_whisper_base_has_the_tensors_that_whisper_cpp_expects(whisper_model_dir: Path) -> None:
    """whisper.cpp refuses a file with other tensors: six layers in each half, 80 mel bands and 51,865 tokens."""
    found = {one.name: one.values.shape for one in ggml_tensors(read_weights(whisper_model_dir / "model.bin"))}
    assert len(found) == 5 + 6 * 15 + 2 + 2 + 6 * 24 + 2
    assert found["encoder.positional_embedding"] == (1500, 512)
    assert found["encoder.conv1.weight"] == (512, 80, 3)
    assert found["decoder.token_embedding.weight"] == (51_865, 512)
    assert found["decoder.blocks.5.cross_attn.key.weight"] == (512, 512)
    words = read_vocabulary(whisper_model_dir / "tokenizer.json")
    assert (len(words), words[0], words[256]) == (50_257, b"!", b" t")
