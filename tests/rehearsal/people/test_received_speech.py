"""Received packets are decoded on request, in the speaker's order and with the speaker's pauses."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from rehearsal.people.received_speech import ReceivedSpeech
from tests.rehearsal.people.sounds import silence, tone
from voice.transport.opus import SILENCE_FRAME, Encoder

FRAME_S = 0.02


def packets_of(pcm: NDArray[np.int16]) -> list[bytes]:
    """Return 48 kHz mono sound as 20 ms Opus packets."""
    encoder = Encoder()
    return [encoder.encode(pcm[at : at + 960]) for at in range(0, len(pcm) - 959, 960)]


VOICE = packets_of(tone(1.0))
QUIET = packets_of(silence(0.2))


def hear(
    packets: Sequence[bytes], *, at: float = 10.0, first_sequence: int = 65_530, ssrc: int = 7, lost: Sequence[int] = ()
) -> ReceivedSpeech:
    """Return what is heard when these packets arrive every 20 ms. The sequence numbers wrap around early."""
    heard = ReceivedSpeech()
    for index, opus in enumerate(packets):
        if index not in lost:
            put(heard, index, opus, at=at + FRAME_S * index, first_sequence=first_sequence, ssrc=ssrc)
    return heard


def put(
    heard: ReceivedSpeech, index: int, opus: bytes, *, at: float, first_sequence: int = 65_530, ssrc: int = 7
) -> None:
    """Add packet number `index`."""
    sequence = (first_sequence + index) & 0xFFFF
    timestamp = (4_294_960_000 + 960 * index) & 0xFFFFFFFF
    heard.add(arrived_at=at, ssrc=ssrc, sequence=sequence, timestamp=timestamp, opus=opus)


def test_the_first_and_last_voiced_frame_are_found() -> None:
    """The first and last voiced frames are found by arrival time, without the silence around the voice."""
    heard = hear([*QUIET, *VOICE, *QUIET])
    first, last = heard.voiced_at(since=0.0) or (0.0, 0.0)
    assert first == pytest.approx(10.2, abs=0.021)
    assert last == pytest.approx(11.2, abs=0.041)
    assert heard.voiced_at(since=11.3) is None


@given(order=st.permutations(range(12)))
def test_any_order_of_arrival_gives_the_same_sound(order: list[int]) -> None:
    """Packets that arrive in another order are sorted by their sequence numbers."""
    heard = ReceivedSpeech()
    for step, index in enumerate(order):
        put(heard, index, VOICE[index], at=10.0 + step * FRAME_S)
    in_order = hear(VOICE[:12]).pcm(since=0.0)
    mixed = np.concatenate([frame.pcm for frame in heard.frames(since=0.0)])
    assert np.array_equal(mixed, in_order)


def test_a_track_has_each_sound_at_its_time() -> None:
    """With all its silence, at any rate. A packet that comes a little late leaves no gap."""
    heard = hear(VOICE[:10], at=10.5)
    put(heard, 10, VOICE[10], at=10.73)
    put(heard, 11, VOICE[11], at=12.0)
    track = heard.track(since=10.0, until=13.0, rate_hz=48_000)
    assert len(track) == 3 * 48_000
    loud = np.flatnonzero(np.abs(track.reshape(-1, 960)).max(axis=1) > 1_000)
    assert loud.tolist() == [*range(25, 36), 100]


def test_talkspurts_are_those_of_one_session_each() -> None:
    """A pause parts them, silence frames belong to none, and two sessions that send at once overlap."""
    heard = ReceivedSpeech()
    for index, opus in enumerate(VOICE[:10]):
        put(heard, index, opus, at=10.0 + FRAME_S * index)
        put(heard, index, opus, at=10.1 + FRAME_S * index, ssrc=9)
    put(heard, 10, SILENCE_FRAME, at=10.5)
    put(heard, 11, VOICE[0], at=12.0)
    spurts = heard.talkspurts(since=10.0, pause_s=1.0)
    assert [(spurt.ssrc, spurt.began_at) for spurt in spurts] == [(7, 10.0), (9, 10.1), (7, 12.0)]
    assert spurts[0].ended_at == pytest.approx(10.18)
    assert [spurt.sound_s for spurt in spurts] == pytest.approx([0.2, 0.2, FRAME_S])
    assert [spurt.began_at for spurt in heard.talkspurts(since=11.0, pause_s=1.0)] == [12.0]


def test_a_new_session_has_its_own_decoder() -> None:
    """After a reconnect with a new SSRC and new sequence numbers, both stretches are heard."""
    heard = hear(VOICE[:10], ssrc=7)
    for index, opus in enumerate(VOICE[:10]):
        put(heard, index, opus, at=11.0 + FRAME_S * index, first_sequence=3, ssrc=8)
    assert len(heard.frames(since=0.0)) == 20
