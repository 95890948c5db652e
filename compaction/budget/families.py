"""Which vocabulary a model counts in, told by its name.

Only families whose vocabulary is public are here. Claude's is not: what pip can bring is Claude 2's, and later
models count differently, so theirs is the guess, calibrated by what the provider reports.
"""

from __future__ import annotations

import re
from enum import StrEnum


class Family(StrEnum):
    """A vocabulary and the models that share it; the value is its public name."""

    O200K = "o200k_base"
    CL100K = "cl100k_base"
    QWEN = "qwen"


# Tried in order, on the last part of the name in lower case. Sources: tiktoken's model table; Qwen's model cards
# (Qwen 1 to 3 share one vocabulary, 3.5 has another).
_NAMES: tuple[tuple[re.Pattern[str], Family], ...] = (
    (re.compile(r"^(ft:)?(gpt-4o|gpt-4\.[15]|chatgpt-4o|gpt-5|gpt-oss)"), Family.O200K),
    (re.compile(r"^o[134](-|$)"), Family.O200K),
    (re.compile(r"^(ft:)?(gpt-4|gpt-3\.5|gpt-35)(-|$)"), Family.CL100K),
    (re.compile(r"^text-embedding-(3|ada)"), Family.CL100K),
    (re.compile(r"^(qwen([123]|1\.5|2\.5)?([^0-9.]|$)|qwq)"), Family.QWEN),
)


def family_of(model: str) -> Family | None:
    """Return the vocabulary of the model of that name, or None when it is not a known one.

    A provider's prefix (`openai/`), a path and a tag (`:7b`) don't matter: `ollama/qwen2.5:7b` is a Qwen.
    """
    name = model.strip().lower().replace("\\", "/").rsplit("/", 1)[-1]
    return next((family for pattern, family in _NAMES if pattern.match(name)), None)
