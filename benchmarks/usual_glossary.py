"""The glossary that the recogniser gets in the benchmarks without a room: that of four people in the benchmarks' room.

In a room there is always one. It costs prompt tokens, and without it Whisper writes fewer marks, so that fewer ends are
sure.
"""

from __future__ import annotations

from bot.brain.settings import BrainSettings
from voice.asr.glossary import choose_glossary

PEOPLE = ("Ada", "Ben", "Chloe", "Dmitri", "Elin", "Farid")
SERVER, CHANNEL = "The local guild", "Evening"
USUAL_GLOSSARY = choose_glossary(wake_names=BrainSettings().names, display_names=PEOPLE[:4], words=(SERVER, CHANNEL))
