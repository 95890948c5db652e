"""The stand-ins of a rehearsal: what the recogniser tells of a recording, what the voice hums, what the model says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from bot.brain.decider import Reason
from bot.brain.skip import SKIP, skip_instruction
from rehearsal.roomtone.known_sounds import KnownSounds
from rehearsal.roomtone.stand_ins import RATE_HZ, answer_call, hum
from rehearsal.script.scenario_file import bundled_scenarios, load_scenario
from rehearsal.servers.chat import ChatCall
from rehearsal.servers.transcription import decode_audio

if TYPE_CHECKING:
    from numpy.typing import NDArray

SPOKEN = {
    say.say: decode_audio(say.audio.read_bytes())
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


@pytest.mark.parametrize("text", SPOKEN)
def test_a_recording_is_heard_whole(ear: KnownSounds, text: str) -> None:
    """However loud it is, and wherever it lies."""
    assert ear.words_in(np.concatenate([QUIET, SPOKEN[text] // 3, QUIET])) == text


@pytest.mark.parametrize(
    ("pieces", "heard"),
    [
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
def test_a_part_has_the_words_so_far(ear: KnownSounds, pieces: list[NDArray[np.int16]], heard: str) -> None:
    """Cut in a pause, put together anew, or not known at all."""
    assert ear.words_in(np.concatenate(pieces)) == heard


def test_what_the_voice_hums_is_heard() -> None:
    """Of two texts that begin alike, each is known by its own tune, and half a tune has half of the words."""
    ear, texts = KnownSounds(), ("The gate is open.", "The gate is shut.")
    for text in texts:
        ear.add(hum(text), text)
    assert [ear.words_in(hum(text)) for text in texts] == [*texts]
    assert ear.words_in(hum(texts[1])[: len(hum(texts[1])) // 2]) == "The gate"


ENGAGED, QUIET_ROOM = skip_instruction(Reason.ENGAGED), skip_instruction(Reason.QUIET_ROOM)


@pytest.mark.parametrize(
    ("told", "asked", "answer"),
    [
        ("", "Ada: Roomtone, where is the boat?", "Bo said: The boat is in the shed."),
        ("", "Ada: Roomtone, where is the boat?\nBo: I open the window.", "Bo said: The boat is in the shed."),
        ("", "Bo: Oh.\nAda: Roomtone, where is the gate?", "Ada said: The gate is behind the house."),
        (ENGAGED, "Ada: And where is the boat?", "Bo said: The boat is in the shed."),
        (ENGAGED, "Ada: I see the boat.", SKIP),
        (QUIET_ROOM, "Ada: And where is the boat?", SKIP),
    ],
)
def test_the_model_answers_from_the_prompt(told: str, asked: str, answer: str) -> None:
    """It says what the bot says without a model, to whoever calls it, and SKIP where nobody needs an answer."""
    turns = ("[21:00] Bo: Where is the boat? The boat is in the shed.", "[21:01] Ada: The gate is behind the house.")
    said = [{"role": "user", "content": each} for each in (*turns, f"[21:02] {asked}")]
    call = ChatCall(({"role": "system", "content": told}, *said), stream=True, body={})
    assert answer_call(call, names=("Roomtone",)) == answer
