"""all-MiniLM-L6-v2 as int8 ONNX: embeds a text as a unit vector of 384 components, in about 10 ms.

Mean pooling as in the model card of sentence-transformers/all-MiniLM-L6-v2. It runs in the thread of
`bot.embedding.worker`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bot.embedding.worker import ThreadedEmbedder
from bot.errors import ModelError

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

MODEL_NAME = "all-MiniLM-L6-v2-onnx-int8"
# Longer texts are cut to this, as in the model's training. A turn is rarely longer.
MAX_TOKENS = 128


def minilm_embedder(directory: Path) -> ThreadedEmbedder:
    """Return the embedder of the model in `directory`; entering it loads the model."""
    return ThreadedEmbedder(lambda: MiniLm(directory), model=MODEL_NAME)


class MiniLm:
    """Tokenizer and model. Use it only in the thread that made it."""

    def __init__(self, directory: Path) -> None:
        # Imported here, because they take half a second to load.
        import onnxruntime
        from tokenizers import Tokenizer

        options = onnxruntime.SessionOptions()
        # The recogniser needs the other cores.
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.log_severity_level = 4
        # A plan of the memory for each number of tokens met, of no use for 10 ms of work.
        options.enable_mem_pattern = False
        try:
            self._tokenizer = Tokenizer.from_file(str(directory / "tokenizer.json"))
            self._session = onnxruntime.InferenceSession(
                str(directory / "model.onnx"), sess_options=options, providers=["CPUExecutionProvider"]
            )
            self._inputs = {node.name for node in self._session.get_inputs()}
        except Exception as exc:
            raise ModelError(
                f"The embedding model in {directory} cannot be read. Run `roomtone models pull embed --again`, or "
                "remove the folder."
            ) from exc
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(max_length=MAX_TOKENS)

    def embed(self, text: str) -> NDArray[np.float32]:
        # The tokenizer can't encode a lone surrogate.
        ids = self._tokenizer.encode(text.encode("utf-8", "replace").decode("utf-8")).ids
        tokens = np.array([ids], dtype=np.int64)
        given = {"input_ids": tokens, "attention_mask": np.ones_like(tokens), "token_type_ids": np.zeros_like(tokens)}
        hidden = self._session.run(None, {name: value for name, value in given.items() if name in self._inputs})[0]
        pooled: NDArray[np.float32] = hidden[0].mean(axis=0)
        return pooled / max(float(np.linalg.norm(pooled)), 1e-9)
