"""The stand-ins of a rehearsal: what the recogniser tells of a recording, and what the voice hums."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from rehearsal.people.clip import read_sound
from rehearsal.roomtone.known_sounds import KnownSounds
from rehearsal.roomtone.stand_ins import hum
from rehearsal.script.scenario_file import bundled_scenarios, load_scenario
from rehearsal.servers.transcription import RATE_HZ

SPOKEN = {
    say.say: read_sound(say.audio, rate_hz=RATE_HZ)
    for say in load_scenario(bundled_scenarios()["second-thoughts"]).says
    if say.audio is not None
}
# It has a pause from 1.56 to 2 s.
QUESTION = "Roomtone, when does it begin? The film in the old theatre."
FIRST, SECOND = SPOKEN[QUESTION][: int(1.6 * RATE_HZ)], SPOKEN[QUESTION][int(1.8 * RATE_HZ) :]
QUIET = np.zeros(4_321, np.int16)
NOISE = (np.random.default_rng(1).standard_normal(RATE_HZ) * 2_000).astype(np.int16)


@pytest.fixture(scope="module")
def ear() -> KnownSounds:
    """It knows a scenario's recordings."""
    known = KnownSounds()
    for text, pcm in SPOKEN.items():
        known.add(pcm, text)
    return known


@pytest.mark.parametrize(
    ("pieces", "heard"),
    [
        *(([QUIET, pcm // 3, QUIET], text) for text, pcm in SPOKEN.items()),
        ([FIRST], "Roomtone, when does it begin?"),
        ([SECOND], "The film in the old theatre."),
        ([FIRST, QUIET, QUIET, SECOND], QUESTION),
        ([SECOND, QUIET, FIRST], "The film in the old theatre. Roomtone, when does it begin?"),
        ([FIRST, FIRST], "Roomtone, when does it begin? Roomtone, when does it begin?"),
        ([QUIET], ""),
        ([NOISE], ""),
        ([QUIET[:0]], ""),
    ],
)
def test_sound_has_the_words_that_are_known_in_it(
    ear: KnownSounds, pieces: list[NDArray[np.int16]], heard: str
) -> None:
    """Whole and soft, cut in a pause, put together anew, or not known at all."""
    assert ear.words_in(np.concatenate(pieces)) == heard


def test_what_the_voice_hums_is_heard() -> None:
    """Of two texts that begin alike, each is known by its own tune, and half a tune has half of the words."""
    ear, texts = KnownSounds(), ("The gate is open.", "The gate is shut.")
    for text in texts:
        ear.add(hum(text), text)
    assert [ear.words_in(hum(text)) for text in texts] == [*texts]
    assert ear.words_in(hum(texts[1])[: len(hum(texts[1])) // 2]) == "The gate"
