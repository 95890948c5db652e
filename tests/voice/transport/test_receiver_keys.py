"""How the receiver finds the key of a frame, what it does if none opens it, and which it hears in the clear."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.fakes.dave_room import DaveRoom, Sender
from tests.voice.transport.receiver_scene import (
    ANA,
    BEN,
    Ear,
    announced,
    assert_each_datagram_has_one_fate,
    tone_packets,
)
from voice.transport.opus import SILENCE_FRAME
from voice.transport.watchdog import RecoverGroup, SpeakerNotHeard, WatchdogFinding


def test_keys_are_read_live_through_two_renewals() -> None:
    """No frame is lost if the group enters a new epoch and the transport's key changes during speech."""
    ear, ana = announced()
    ear.say(ana, 10)
    ear.room.renew()
    ear.say(ana, 10)
    ear.keys.secret_key = [7] * 32
    ear.say(ana, 10)
    ear.rest(0.5)
    assert ear.frames_of(ANA) == 30
    assert ear.counters.dave_failures == ear.counters.transport_failures == 0


@pytest.fixture
def ear() -> Ear:
    """A receiver that knows nobody."""
    return Ear()


def test_without_op_5_the_key_tells_who_speaks(ear: Ear) -> None:
    """Without op 5, as after a restart during speech, each of two members is identified by their own key."""
    ana, ben = ear.sender(ANA, 11), ear.sender(BEN, 12)
    for _ in range(20):
        ear.take(ana.datagram(next(ear.opus)))
        ear.take(ben.datagram(next(ear.opus)))
    ear.rest(0.5)
    assert ear.frames_of(ANA) == ear.frames_of(BEN) == 20
    assert ear.counters.held == 0
    assert {item.ssrc for item in ear.speech_of(BEN)} == {12}


@pytest.mark.parametrize(("sequence", "quiet_s", "hers", "his"), [(500, 0.0, 10, 40), (0, 3.0, 100, 100)])
def test_an_ssrc_that_goes_to_somebody_else_without_op_5_is_theirs(
    ear: Ear, sequence: int, quiet_s: float, hers: int, his: int
) -> None:
    """The key tells whose it is now: nothing is lost, and the group is not taken for broken. Where both count from the
    same number, the packets of the second are no copies of the first one's after the silence between them.
    """
    ana, ben = ear.sender(ANA, 11), ear.sender(BEN, 11)
    ben.sequence = sequence or ana.sequence
    ear.receiver.speaks(11, ANA)
    ear.say(ana, hers)
    ear.rest(quiet_s)
    ear.say(ben, his)
    ear.rest(0.5)
    assert (ear.frames_of(ANA), ear.frames_of(BEN)) == (hers, his)
    assert ear.receiver.check(connected=True, in_transition=False, deafened=False) == []
    assert_each_datagram_has_one_fate(ear)


@pytest.mark.parametrize(("announced", "heard"), [(True, 20), (False, 10)])
def test_held_frames_of_two_people_are_never_delivered_as_the_other_s(ear: Ear, announced: bool, heard: int) -> None:
    """An SSRC passes from Ana to Ben before the group is ready. Once it is Ben's, by op 5 or by his key, what Ana had
    sent there is given up, and none of his frames is heard as hers. A key that has opened a frame opens no earlier one.
    """
    ana, ben = ear.sender(ANA, 11), ear.sender(BEN, 11)
    ben.sequence = 500
    ear.keys.dave_session = None
    ear.say(ana, 5)
    ear.say(ben, 10)
    ear.keys.dave_session = ear.room.bot
    if announced:
        ear.receiver.speaks(11, BEN)
    ear.say(ben, 10)
    ear.rest(0.5)
    assert (ear.frames_of(ANA), ear.frames_of(BEN)) == (0, heard)
    assert ear.counters.dave_failures == 25 - heard
    assert ear.receiver.check(connected=True, in_transition=False, deafened=False) == []
    assert_each_datagram_has_one_fate(ear)


def test_keys_are_tried_anew_once_everybody_sends_with_them(ear: Ear) -> None:
    """Keys are tried again after op 22, because the others use their old keys until the slowest member is ready."""
    ana = ear.sender(ANA, 11)
    ana.session = DaveRoom(ANA).sessions[ANA]
    ear.say(ana, 40)
    ana.session = ear.room.sessions[ANA]
    ear.receiver.rekeyed()
    ear.say(ana, 5)
    ear.rest(0.5)
    assert ear.frames_of(ANA) == 5


def test_nobody_s_frames_are_given_up(ear: Ear) -> None:
    """If no member's key opens an SSRC, 25 of its frames wait, and after a while they are dropped and counted."""
    stranger = Sender(2009, 19, DaveRoom(2009).sessions[2009], ear.keys)
    ear.say(stranger, 40)
    ear.rest(3.0)
    assert ear.counters.unknown_ssrc == 40
    assert ear.heard == []
    assert_each_datagram_has_one_fate(ear)


def test_wrong_sender_key_is_counted_and_raises_recovery(ear: Ear) -> None:
    """After 36 frames in a row that the sender's key does not open, the watchdog asks for a new group."""
    fake = Sender(ANA, 11, DaveRoom(ANA).sessions[ANA], ear.keys)
    ear.receiver.speaks(11, ANA)

    def verdicts() -> list[object]:
        return list(ear.receiver.check(connected=True, in_transition=False, deafened=False))

    ear.say(fake, 35)
    assert verdicts() == []
    ear.say(fake, 1)
    assert verdicts() == [RecoverGroup(ANA, 36)]
    assert ear.counters.dave_failures == 36
    assert ear.heard == []


def test_frames_from_before_the_group_use_up_no_tries(ear: Ear) -> None:
    """Frames from before the group is ready do not use up the tries. The first frame afterwards identifies
    the sender.
    """
    ana = ear.sender(ANA, 11)
    for unready in (None, DaveRoom().bot):
        ear.keys.dave_session = unready
        ear.say(ana, 40)
    ear.keys.dave_session = ear.room.bot
    ear.say(ana, 5)
    ear.rest(0.5)
    assert ear.frames_of(ANA) == 5


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
    return ear.receiver.check(connected=True, in_transition=False, deafened=False)


@pytest.mark.parametrize("ends_in_silence", [True, False])
def test_who_comes_in_the_clear_again_and_again_is_told_and_costs_no_connection(
    ear: Ear, ends_in_silence: bool
) -> None:
    """Someone whose frames all come in the clear is not heard, which is told each time. The way works."""
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
