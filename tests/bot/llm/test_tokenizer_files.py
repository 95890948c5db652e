"""Reading a model's tokenizer from files that are valid, unknown or damaged."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.llm.tokenizers import read_tokenizer
from tests.bot.models.tiny_llama import byte_letters

MODELS_DIR = Path(__file__).parents[3] / "data" / "models"


def packed(text: str) -> bytes:
    """Encode a string as GGUF does."""
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def strings(values: list[str]) -> bytes:
    """Encode an array of strings as GGUF does."""
    return struct.pack("<IIQ", 9, 8, len(values)) + b"".join(map(packed, values))


def gguf(*, kind: str = "gpt2", pre: str | None = "qwen2", version: int = 3) -> bytes:
    """Return the head of a GGUF file whose vocabulary has all bytes and the words `hello` and ` world`."""
    merges = ["h e", "l l", "he ll", "hell o", "Ġ w", "o r", "Ġw or", "l d", "Ġwor ld"]
    tokens = [*byte_letters(), *(merge.replace(" ", "") for merge in merges)]
    pairs = [
        packed("general.architecture") + struct.pack("<I", 8) + packed("qwen2"),
        packed("general.quantization_version") + struct.pack("<II", 4, 2),
        packed("tokenizer.ggml.model") + struct.pack("<I", 8) + packed(kind),
        packed("tokenizer.ggml.token_type") + struct.pack("<IIQ", 9, 5, 3) + struct.pack("<3i", 1, 1, 1),
        packed("tokenizer.ggml.tokens") + strings(tokens),
        packed("tokenizer.ggml.merges") + strings(merges),
    ]
    if pre is not None:
        pairs.append(packed("tokenizer.ggml.pre") + struct.pack("<I", 8) + packed(pre))
    return b"GGUF" + struct.pack("<IQQ", version, 0, len(pairs)) + b"".join(pairs)


@pytest.mark.parametrize("pre", ["qwen2", "llama-bpe", "smollm", "gpt-2", None])
def test_a_gguf_heads_vocabulary_counts(tmp_path: Path, pre: str | None) -> None:
    """A word in the vocabulary counts as one token, and other text as its bytes."""
    path = tmp_path / "model.gguf"
    path.write_bytes(gguf(pre=pre) + b"weights" * 100)
    tokenizer = read_tokenizer(path)
    assert tokenizer.count("hello world") == 2
    assert tokenizer.count("") == 0
    assert tokenizer.count("é") == 2
    assert tokenizer.count("a\ud800") >= 2


def test_a_tokenizer_json_counts() -> None:
    """The tokenizer.json of Whisper, which `make setup` downloads, can be read."""
    assert read_tokenizer(MODELS_DIR / "whisper-base" / "tokenizer.json").count("hello world") == 3


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("a.gguf", b"", "it is empty"),
        ("a.gguf", b"GGUF" + bytes(4), "damaged"),
        ("a.gguf", gguf(version=9), "damaged"),
        ("a.gguf", gguf(kind="llama"), "llama with qwen2, is not known here"),
        ("a.gguf", gguf(pre="dreams"), "gpt2 with dreams, is not known here"),
        ("a.gguf", gguf()[:-20], "damaged"),
        ("a.gguf", b"GGUF" + struct.pack("<IQQ", 3, 0, 1 << 60), "damaged"),
        ("a.gguf", b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 1 << 60), "damaged"),
        ("a.gguf", b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + packed("x") + struct.pack("<I", 77), "damaged"),
        ("a.json", b"{}", "no tokenizer that can be read"),
        ("missing.json", None, "no tokenizer that can be read"),
        ("missing.gguf", None, "no tokenizer that can be read"),
    ],
)
def test_what_cannot_be_read_is_told_with_the_remedy(
    tmp_path: Path, name: str, content: bytes | None, why: str
) -> None:
    """A file that cannot be read gives a ValueError with the reason and the remedy."""
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ValueError, match=rf"{why}.*Replace it with the model's tokenizer\.json"):
        read_tokenizer(path)


@settings(deadline=None)
@given(content=st.binary(max_size=300))
def test_any_bytes_are_refused_or_read(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    """Any bytes after a valid GGUF magic number give a ValueError and no other exception."""
    path = tmp_path_factory.mktemp("heads") / "a.gguf"
    path.write_bytes(b"GGUF" + struct.pack("<I", 3) + content)
    with pytest.raises(ValueError, match="no tokenizer"):
        read_tokenizer(path)
