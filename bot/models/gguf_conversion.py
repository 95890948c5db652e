"""Converts the small language model of the catalogue from GGUF, the format of llama.cpp, into the form that CTranslate2
runs.

CTranslate2 comes with the recogniser, so the model needs no engine of its own. The weights become 8-bit numbers, one
tensor after the other, so a conversion needs little more memory than its result and the largest tensor.

A downloaded file has the hash that the catalogue says. A file that a person copied may be damaged or another one: then
something in it is not as expected, and it is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers

from bot.errors import ModelError

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from gguf.gguf_reader import GGUFReader

TOKENIZER_NAME = "tokenizer.json"
# What a converted model consists of.
CONVERTED_FILES = ("model.bin", "config.json", "vocabulary.json", TOKENIZER_NAME)

# How llama.cpp's pre-tokeniser "smollm" splits a text into words, one pattern after the other.
_WORDS = (r"\p{N}", r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+")
_EMBEDDINGS = "token_embd.weight"


def convert_llama_gguf(gguf_file: Path, folder: Path) -> None:
    """Write the CTranslate2 form of a GGUF file, and its tokenizer, into `folder`, which exists and is empty.

    Raises `ModelError` if the file is damaged or of another kind, and `OSError`.
    """
    try:
        # It takes a moment to import, and a bot without such a model does not need it.
        from gguf.gguf_reader import GGUFReader

        model = _GgufModel(GGUFReader(gguf_file))
        tokenizer = build_tokenizer(model.value("tokenizer.ggml.tokens"), model.value("tokenizer.ggml.merges"))
        _build_spec(model).save(str(folder))
        (folder / TOKENIZER_NAME).write_text(tokenizer.to_str(), encoding="utf-8")
    except OSError:
        raise
    except MemoryError as error:
        raise ModelError(f"There is not enough memory to convert {gguf_file.name}. End other programs.") from error
    except Exception as error:
        # The libraries raise many kinds of error for what they do not expect in a file.
        raise ModelError(
            f"{gguf_file.name} is damaged, or no language model that can be used here. Pull the model again."
        ) from error


class _GgufModel:
    """What a file says of a model, and its weights, each of which is read once."""

    def __init__(self, reader: GGUFReader) -> None:
        self._reader = reader
        self._tensors = {tensor.name: tensor for tensor in reader.tensors}
        self.layers: int = self.value("llama.block_count")
        known = (
            self.value("general.architecture"),
            self.value("tokenizer.ggml.model"),
            self.value("tokenizer.ggml.pre"),
        )
        if known != ("llama", "gpt2", "smollm") or self.layers > len(self._tensors):
            raise ValueError(f"{known} with {self.layers} layers")

    def value(self, key: str) -> Any:
        """Return a value of the header."""
        found = self._reader.get_field(key)
        if found is None:
            raise ValueError(f"no {key}")
        return found.contents()

    def weights(self, name: str) -> np.ndarray[Any, np.dtype[np.float32]]:
        """Return the numbers of a tensor, rows first."""
        import numpy as np
        from gguf.quants import dequantize

        tensor = self._tensors.pop(name)
        shape = tuple(int(size) for size in reversed(tensor.shape))
        # Damaged scales overflow.
        with np.errstate(all="ignore"):
            weights = np.array(dequantize(tensor.data, tensor.tensor_type), dtype=np.float32).reshape(shape)
        if not np.isfinite(weights).all():
            raise ValueError(f"{name} has numbers without end")
        return weights

    def require_all_read(self) -> None:
        """Raise `ValueError` if a tensor was not used: without it the model would answer nonsense."""
        if self._tensors:
            raise ValueError(f"{min(self._tensors)} is not known here")


def build_tokenizer(tokens: list[str], merges: list[str]) -> Tokenizer:
    """Return the tokenizer of a vocabulary.

    Text never becomes a control token such as `<|im_end|>`, not even text that spells one: what people say stays text.
    Their numbers are known to `token_to_id`.
    """
    pairs = [(left, right) for left, _, right in (merge.partition(" ") for merge in merges)]
    tokenizer = Tokenizer(models.BPE(vocab={token: number for number, token in enumerate(tokens)}, merges=pairs))
    splits = [pre_tokenizers.Split(Regex(words), behavior="isolated") for words in _WORDS]
    by_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*splits, by_bytes])
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def _build_spec(model: _GgufModel) -> Any:
    """Return CTranslate2's description of the model, with its weights."""
    import numpy as np
    from ctranslate2.specs import common_spec, transformer_spec

    spec = transformer_spec.TransformerDecoderModelSpec.from_config(
        model.layers,
        model.value("llama.attention.head_count"),
        activation=common_spec.Activation.SWISH,
        pre_norm=True,
        ffn_glu=True,
        rms_norm=True,
        # All numbers of a head.
        rotary_dim=0,
        # GGUF has queries and keys in the order of the first Llama: rows that are turned together are side by side.
        rotary_interleave=True,
        rotary_base=model.value("llama.rope.freq_base"),
        num_heads_kv=model.value("llama.attention.head_count_kv"),
    )
    decoder = spec.decoder
    decoder.scale_embeddings = False
    decoder.layer_norm.gamma = model.weights("output_norm.weight")
    _quantise(decoder.embeddings, model.weights(_EMBEDDINGS))
    decoder.projection.weight = decoder.embeddings.weight
    for number, layer in enumerate(decoder.layer):
        block = f"blk.{number}"
        attention, feed_forward = layer.self_attention, layer.ffn
        attention.layer_norm.gamma = model.weights(f"{block}.attn_norm.weight")
        joined = np.concatenate([model.weights(f"{block}.attn_{part}.weight") for part in "qkv"])
        _quantise(attention.linear[0], joined)
        _quantise(attention.linear[1], model.weights(f"{block}.attn_output.weight"))
        feed_forward.layer_norm.gamma = model.weights(f"{block}.ffn_norm.weight")
        _quantise(feed_forward.linear_0, model.weights(f"{block}.ffn_gate.weight"))
        _quantise(feed_forward.linear_0_noact, model.weights(f"{block}.ffn_up.weight"))
        _quantise(feed_forward.linear_1, model.weights(f"{block}.ffn_down.weight"))
    model.require_all_read()
    tokens = model.value("tokenizer.ggml.tokens")
    spec.register_vocabulary(tokens)
    config = spec.config
    config.bos_token, config.eos_token, config.unk_token = (
        tokens[model.value(f"tokenizer.ggml.{kind}_token_id")] for kind in ("bos", "eos", "unknown")
    )
    config.layer_norm_epsilon = model.value("llama.attention.layer_norm_rms_epsilon")
    spec.validate()
    # The name of another weight is stored as a reference, which also stands for its scale. `spec.optimize` would find
    # it by itself, but makes references of equal scales too, and those are not found when the model is run in another
    # precision.
    decoder.projection.weight = "decoder/embeddings/weight"
    return spec


def _quantise(part: Any, weight: np.ndarray[Any, np.dtype[np.float32]]) -> None:
    """Give a part of the model its weight, as 8-bit numbers."""
    part.weight = weight
    part.validate()
    part.optimize(quantization="int8")
