"""Tells texts that describe a sound from words: a recogniser writes '[laughter]' for a laugh. Pure."""

from __future__ import annotations

import re

_EFFECT = re.compile(r"[\[(*♪][^\[\]()*♪]+[\])*♪][.!]?")


def is_sound_effect(text: str) -> bool:
    """Return whether `text` only names a sound: '[laughter]', '(coughs)', '*sighs*'."""
    return _EFFECT.fullmatch(text.strip()) is not None
