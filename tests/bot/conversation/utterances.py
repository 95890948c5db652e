"""What somebody has said, as the recogniser tells it."""

from __future__ import annotations

import numpy as np

from bot import events
from bot.events import SpokenText
from voice.asr.port import Recognition
from voice.listening.utterance import Utterance


def spoken(utterance_id: str, user_id: int, text: str, *, at: float = 98.0) -> SpokenText:
    """Return what somebody has said in the last two seconds. `at`: when they began."""
    utterance = Utterance(utterance_id, user_id, at, 99.5, 99.8, np.zeros(0, np.int16))
    return events.SpokenText(utterance, Recognition(text, "en", -0.2, 1.0, 0.0, 1.5, 0.1), 99.8, 100.0)
