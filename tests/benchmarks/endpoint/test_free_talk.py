"""The free talk: its pauses are drawn from a seed, and its utterances are cut where the voice pauses."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.endpoint.free_talk import (
    LEAD_S,
    PAUSE_LONGEST_S,
    PAUSE_MEDIAN_S,
    PAUSE_SHORTEST_S,
    TAIL_S,
    VOICES,
    TalkLine,
    TalkSet,
    assemble,
    cut_at_pauses,
    cut_points,
    talk_lines,
)
from benchmarks.synthetic_speech import SPEECH_RMS
from rehearsal.people.clip import RATE_HZ
from voice.audio import Pcm


def tone(hz: float, seconds: float) -> Pcm:
    """Return a tone as loud as speech."""
    at = np.arange(round(seconds * RATE_HZ)) / RATE_HZ
    sound: Pcm = np.rint(SPEECH_RMS * np.sqrt(2) * np.sin(2 * np.pi * hz * at)).astype(np.int16)
    return sound


@pytest.mark.parametrize("part", list(TalkSet))
def test_the_same_seed_gives_the_same_pauses(part: TalkSet) -> None:
    """Sixty utterances a set, each with one pause fewer than pieces, of the lengths that people's pauses have."""
    lines = talk_lines(part)
    assert lines == talk_lines(part)
    assert lines != talk_lines(part, seed=1)
    assert len(lines) == 60
    assert all(len(line.pieces) == len(line.pauses_s) + 1 for line in lines)
    pauses = [pause for line in lines for pause in line.pauses_s]
    assert min(pauses) >= PAUSE_SHORTEST_S
    assert max(pauses) <= PAUSE_LONGEST_S
    assert PAUSE_MEDIAN_S / 1.5 < float(np.median(pauses)) < PAUSE_MEDIAN_S * 1.5
    assert {line.voice for line in lines} == set(VOICES[part])


def test_the_set_that_decides_has_voices_and_sentences_of_its_own() -> None:
    """Nothing that is tuned with is in the set that decides."""
    tuning, judging = (talk_lines(part) for part in TalkSet)
    assert not {line.voice for line in tuning} & {line.voice for line in judging}
    assert not {line.text for line in tuning} & {line.text for line in judging}


def test_pauses_are_as_long_as_drawn_and_not_digital_silence() -> None:
    """The pieces are joined with the pause between them, in the noise of the room."""
    line = TalkLine("joe", ("one,", "two."), (0.5,), noise_rms=20.0, speed=1.0)
    sound = assemble([tone(300, 0.4), tone(500, 0.6)], line, seed=[1, 2])
    assert len(sound) == round((LEAD_S + 0.4 + 0.5 + 0.6 + TAIL_S) * RATE_HZ)
    pause = sound[round((LEAD_S + 0.4) * RATE_HZ) : round((LEAD_S + 0.9) * RATE_HZ)].astype(np.float64)
    assert 10 < float(np.sqrt(np.mean(pause**2))) < 40
    assert np.array_equal(sound, assemble([tone(300, 0.4), tone(500, 0.6)], line, seed=[1, 2]))


def test_an_utterance_is_cut_where_its_pieces_end() -> None:
    """The boundary in the whole is found although its pieces are spoken faster alone."""
    alone = [tone(300, 0.5), tone(900, 0.4)]
    whole = np.concatenate([tone(300, 0.7), np.zeros(round(0.06 * RATE_HZ), np.int16), tone(900, 0.6)])
    [cut] = cut_points(whole, alone, RATE_HZ)
    assert 0.68 <= cut / RATE_HZ <= 0.8
    pieces = cut_at_pauses(whole, alone)
    assert [round(len(piece) / RATE_HZ, 1) for piece in pieces] == [0.7, 0.6]
    assert cut_at_pauses(whole, alone[:1]) == [whole]
