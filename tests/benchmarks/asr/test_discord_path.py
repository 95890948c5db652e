"""Recordings come through Opus, lost packets, the jitter buffer and endpointing as in a room."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.asr.discord_path import DiscordPath, decoded, lossy
from benchmarks.recordings import load_recordings
from bot.settings import ModelsSettings
from rehearsal.people.clip import Clip
from voice.audio import duration_s
from voice.listening.utterance import DropReason


@given(st.integers(0, 400), st.floats(0, 1), st.integers())
def test_packets_are_lost_by_chance_and_the_same_in_every_run(count: int, loss: float, seed: int) -> None:
    """The packets that arrive keep their numbers and order, and the same seed loses the same ones."""
    packets = [bytes([number % 256]) for number in range(count)]
    arrived = lossy(packets, loss=loss, seed=seed)
    assert arrived == lossy(packets, loss=loss, seed=seed)
    numbers = [number for number, _ in arrived]
    assert numbers == sorted(set(numbers))
    assert all(packets[number] == packet for number, packet in arrived)
    assert len(lossy(packets, loss=0.0, seed=seed)) == count


@pytest.mark.parametrize("loss", [0.0, 0.05])
def test_a_recording_is_one_utterance_with_and_without_loss(tmp_path: Path, loss: float) -> None:
    """A sentence arrives as one utterance, hardly shorter for lost packets, and nothing is dropped."""
    clip = Clip.load(load_recordings(None).recordings[0].path)
    packets = lossy(clip.packets, loss=loss, seed=1)
    heard = DiscordPath(ModelsSettings(directory=tmp_path)).hear(packets)
    assert len(heard.utterances) == 1
    assert heard.dropped == ()
    assert duration_s(decoded(packets)) == pytest.approx(clip.duration_s, abs=0.2)


def test_a_click_is_reported_as_dropped(tmp_path: Path) -> None:
    """A piece of a word is too short for an utterance, which the path reports."""
    clip = Clip.load(load_recordings(None).recordings[0].path)
    first = clip.voiced.first + 10
    piece = [(number, packet) for number, packet in enumerate(clip.packets) if first <= number < first + 10]
    heard = DiscordPath(ModelsSettings(directory=tmp_path)).hear(piece)
    assert (heard.utterances, heard.dropped) == ((), (DropReason.TOO_SHORT,))
