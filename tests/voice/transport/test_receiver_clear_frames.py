"""Frames that come in the clear: heard in a call without encryption, and never in an encrypted one."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.voice.transport.receiver_scene import ANA, Ear, announced, tone_packets
from voice.transport.opus import SILENCE_FRAME
from voice.transport.watchdog import SpeakerNotHeard, WatchdogFinding

if TYPE_CHECKING:
    from tests.fakes.dave_room import Sender


def test_version_0_is_heard_in_the_clear() -> None:
    """After a downgrade to version 0, clear frames are heard, and late encrypted frames are still decrypted."""
    ear, ana = announced()
    ear.keys.dave_protocol_version = 0
    ear.say(ana, 5)
    for _ in range(5):
        ear.take(ana.datagram(next(ear.opus), clear=True))
    ear.rest(0.5)
    assert ear.frames_of(ANA) == 10
    assert ear.counters.dave_failures == 0


def press_to_talk(ear: Ear, sender: Sender, frames: list[bytes], **how: bool) -> list[WatchdogFinding]:
    """Announce a speaker (op 5), send the frames, wait, and return what the watchdog found by then."""
    ear.receiver.speaks(sender.ssrc, sender.user_id)
    for frame in frames:
        ear.take(sender.datagram(frame, **how))  # type: ignore[arg-type]
    ear.rest(5.0)
    return ear.receiver.check(connected=True, runner_alive=True, in_transition=False, deafened=False)


@pytest.mark.parametrize("ends_in_silence", [True, False])
def test_who_comes_in_the_clear_again_and_again_is_told_and_costs_no_connection(ends_in_silence: bool) -> None:
    """Someone whose frames all come in the clear is not heard, which is told each time. The way works."""
    ear = Ear()
    ana = ear.sender(ANA, 11)
    talkspurt = [next(ear.opus) for _ in range(20)] + [SILENCE_FRAME] * (5 * ends_in_silence)
    for _ in range(5):
        found = press_to_talk(ear, ana, talkspurt, clear=True)
        assert [type(finding) for finding in found] == [SpeakerNotHeard]
    assert (ear.counters.clear, ear.counters.decoded) == (100, 0)


def test_clear_frames_between_encrypted_ones_put_no_words_into_a_mouth() -> None:
    """Frames of the server's own among a person's are not heard, and the person's are, each in its place."""
    ear, ana = announced()
    forged = list(itertools.islice(tone_packets(3000.0), 20))
    for n in range(100):
        ear.take(ana.datagram(forged[n // 5], clear=True) if n % 5 == 4 else ana.datagram(next(ear.opus)))
    ear.rest(0.5)
    assert (ear.counters.decoded, ear.counters.clear, ear.counters.lost) == (80, 20, 19)
    sound = np.concatenate([item.pcm for item in ear.speech_of(ANA)])
    spectrum = np.abs(np.fft.rfft(sound.astype(float)))
    at = np.fft.rfftfreq(len(sound), 1 / 16_000)
    assert spectrum[(at > 2800) & (at < 3200)].max() < 0.05 * spectrum[(at > 400) & (at < 480)].max()
