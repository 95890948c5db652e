"""Which recognitions a model may compute together: those of like length. Pure.

All sounds of a batch are encoded with the window of the longest, and the model's time is that of the longest text, so
sounds of unlike length would cost more together than one after the other.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from voice.asr.encoder_window import encoder_window
from voice.audio import duration_s

if TYPE_CHECKING:
    from voice.asr.worker import RecognitionRequest

# Windows that differ by less than this are of like length.
BUCKET_S: Final = 2.0


def fit_together(first: RecognitionRequest, other: RecognitionRequest) -> bool:
    """Return whether two recognitions may be computed together. What is heard with more work is computed alone."""
    return not first.careful and not other.careful and _bucket(first) == _bucket(other)


def _bucket(request: RecognitionRequest) -> tuple[int, bool]:
    """Return the bucket of the window's length, and whether there is a glossary: only then the model gets a text that
    comes before.
    """
    return math.ceil(encoder_window(duration_s(request.pcm)).length_s / BUCKET_S), bool(request.glossary)
