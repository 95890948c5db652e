"""The whole receive path with encrypted datagrams: each person's audio comes out, and everything else is counted."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fakes.dave_room import DaveRoom
from tests.voice.transport.receiver_scene import (
    ANA,
    BEN,
    Ear,
    announced,
    assert_each_datagram_has_one_fate,
    tone_packets,
)
from voice.audio import LISTEN_RATE_HZ
from voice.transport import receiver
from voice.transport.audio_events import SpeakerLeft, TalkspurtEnded
from voice.transport.opus import SILENCE_FRAME
from voice.transport.receiver import MOST_PER_S
from voice.transport.roster import HELD_FRAMES, MOST_SSRCS, HeldFrame, Roster


def test_a_talkspurt_is_heard_whole() -> None:
    """A talkspurt of 50 frames and 5 silence frames gives 1.1 s of one person's contiguous tone, and then its end."""
    ear, ana = announced()
    ear.say(ana, 50)
    ear.fall_silent(ana)
    assert ear.frames_of(ANA) == 55
    speech = ear.speech_of(ANA)
    assert speech[0].captured_at == pytest.approx(100.0)
    for before, after in itertools.pairwise(speech):
        assert after.captured_at == pytest.approx(before.captured_at + len(before.pcm) / 16_000)
    assert ear.ends() == [TalkspurtEnded(ANA, 11, pytest.approx(101.1))]  # type: ignore[arg-type]
    pcm = np.concatenate([item.pcm for item in speech])[1600:16_000]
    peak = np.argmax(np.abs(np.fft.rfft(pcm))) * 16_000 / len(pcm)
    assert abs(peak - 440) < 3
    assert ear.counters.decoded == ear.counters.received == 55
    assert ear.counters.talkspurts == 1
    assert_each_datagram_has_one_fate(ear)


def test_loss_and_reordering_leave_every_frame_in_place() -> None:
    """With one packet in ten lost and one in ten overtaken, missing frames are recovered or concealed and no time is
    lost.
    """
    ear, ana = announced()
    held: bytes | None = None
    for n in range(100):
        if n % 10 == 4:
            next(ear.opus)
            ana.skip()
            ear.now += 0.02
            continue
        datagram = ana.datagram(next(ear.opus))
        if n % 10 == 7:
            held = datagram
            ear.now += 0.02
            continue
        ear.take(datagram)
        if held is not None:
            ear.take(held, after_s=0.0)
            held = None
    ear.rest(0.5)
    assert ear.frames_of(ANA) == 100
    assert (ear.counters.lost, ear.counters.decoded) == (10, 90)
    assert ear.counters.recovered + ear.counters.concealed == 10
    assert len(ear.ends()) == 1
    assert_each_datagram_has_one_fate(ear)


def test_excluded_people_are_never_decrypted() -> None:
    """Frames of excluded people are never decrypted, neither by SSRC nor by trying keys. Frames before op 5 are dropped
    too.
    """

    class Spy:
        def __init__(self, session: object) -> None:
            self.session = session
            self.asked: list[int] = []
            self.ready = True

        def decrypt(self, user_id: int, media: object, frame: bytes) -> bytes:
            self.asked.append(user_id)
            return self.session.decrypt(user_id, media, frame)  # type: ignore[attr-defined,no-any-return]

    ear = Ear(excluded={BEN})
    spy = ear.keys.dave_session = Spy(ear.room.bot)
    ben = ear.sender(BEN, 12)
    ear.say(ben, 5)
    ear.receiver.speaks(12, BEN)
    ear.say(ben, 5)
    ear.receiver.left(BEN)
    ear.rest(1.0)
    assert BEN not in spy.asked
    assert ear.heard == []
    assert ear.counters.excluded == 10


def test_opting_out_in_mid_sentence_holds_at_once() -> None:
    """If a person opts out in mid-sentence, waiting frames are discarded, the talkspurt ends and nothing
    more is heard.
    """
    ear, ana = announced()
    ear.say(ana, 10)
    ana.skip()
    ear.say(ana, 2)
    heard = ear.frames_of(ANA)
    ear.excluded.add(ANA)
    ear.say(ana, 5)
    ear.rest(1.0)
    assert ear.frames_of(ANA) == heard
    assert isinstance(ear.heard[-1], TalkspurtEnded)
    assert ear.counters.excluded == 5
    assert ear.counters.discarded == 2
    assert_each_datagram_has_one_fate(ear)


@pytest.mark.parametrize("extension", [b"", bytes(8)])
def test_bursts_of_padding_are_no_loss(extension: bytes) -> None:
    """Packets that are nothing but padding use up numbers. The speech before and after them is whole, at once."""
    ear, ana = announced()
    for _ in range(3):
        ear.say(ana, 25)
        for n in range(50):
            ana.timestamp -= 960
            silence = n % 4 == 0
            frame = ana.datagram(SILENCE_FRAME if silence else b"", padding=200, extension=extension, clear=True)
            ear.take(frame, after_s=0.002)
        ear.rest(0.6)
        ana.timestamp += 40 * 960
    counts = ear.counters
    assert ear.frames_of(ANA) == 75
    assert (counts.padding, counts.lost, counts.concealed, counts.late, counts.malformed) == (3 * 37, 0, 0, 0, 0)
    assert counts.padded == 150
    assert_each_datagram_has_one_fate(ear)


@pytest.mark.parametrize("pause", [0, 25])
def test_what_waited_while_the_process_stood_still_leaves_no_hole(pause: int) -> None:
    """For three seconds nothing is read. Ana goes on speaking, in one case after half a second of silence."""
    ear, ana = announced()
    ear.say(ana, 50)
    came, waited = ear.now, list[tuple[float, bytes]]()
    for n in range(150):
        if n == 50:
            ana.timestamp += 960 * pause
            came += 0.02 * pause
        waited.append((came, ana.datagram(next(ear.opus))))
        came += 0.02
    ear.now = came
    for n, (at, datagram) in enumerate(waited):
        ear.receiver.set_time(at)
        ear.receiver.datagram(datagram, ear.keys)
        if n == 127:
            ear.receiver.flush()
    ear.receiver.set_time(None)
    ear.say(ana, 10)
    ear.rest(0.5)
    runs = [(item.captured_at, len(item.pcm) / LISTEN_RATE_HZ) for item in ear.speech_of(ANA)]
    holes = [later[0] - at - seconds for (at, seconds), later in itertools.pairwise(runs)]
    assert sum(seconds for _, seconds in runs) == pytest.approx(4.2)
    assert [hole for hole in holes if abs(hole) > 0.01] == ([pytest.approx(0.5)] if pause else [])
    assert len(ear.ends()) == (2 if pause else 1)


def test_copies_are_duplicates_and_no_failures() -> None:
    """A copy of a packet is recognised before decryption, because it cannot be decrypted a second time."""
    ear, ana = announced()
    for _ in range(10):
        datagram = ana.datagram(next(ear.opus))
        ear.take(datagram, after_s=0.0)
        ear.take(datagram)
    ear.rest(0.5)
    assert ear.frames_of(ANA) == 10
    assert (ear.counters.duplicate, ear.counters.dave_failures) == (10, 0)


def test_leaving_ends_what_was_said() -> None:
    """If a person leaves, waiting frames are delivered, then the talkspurt ends, then the person has left."""
    ear, ana = announced()
    ear.say(ana, 5)
    ana.skip()
    ear.receiver.datagram(ana.datagram(next(ear.opus)), ear.keys)
    ear.receiver.left(ANA)
    assert ear.frames_of(ANA) == 7
    assert [type(item) for item in ear.heard[-2:]] == [TalkspurtEnded, SpeakerLeft]
    assert ANA not in ear.receiver.members
    ear.say(ana, 5)
    ear.rest(3.0)
    assert ear.counters.unknown_ssrc == 5


def test_a_flood_costs_no_decryption_and_nobody_else_s_sound() -> None:
    """Of a sender who sends a hundred times as much as a client, a part is worked on; another is heard whole, also if
    the flood's header names them: it has no valid tag then.
    """
    ear = Ear()
    ana, ben = ear.sender(ANA, 11), ear.sender(BEN, 12)
    ear.receiver.speaks(11, ANA)
    ear.receiver.speaks(12, BEN)
    flood = ana.datagram(next(ear.opus))
    forged = ben.datagram(next(ear.opus))[:-20] + bytes(20)
    for _ in range(50):
        ear.take(ben.datagram(next(ear.opus)), after_s=0.0)
        for datagram in [flood] * 80 + [forged] * 20:
            ear.take(datagram, after_s=0.02 / 100)
    ear.rest(0.5)
    assert ear.frames_of(BEN) == 50
    assert ear.counters.excess == 50 * 80 - MOST_PER_S
    assert ear.counters.transport_failures == 50 * 20
    assert_each_datagram_has_one_fate(ear)


@pytest.mark.slow
def test_a_flood_on_unknown_ssrcs_costs_as_little(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys are tried before it is known whose a packet is, and many wait on each SSRC. Ben is heard whole."""
    ear, tries = Ear(), list[str]()

    def counted(name: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def run(*given: object) -> Any:
            tries.append(name)
            return work(*given)

        return run

    for name in ("find_sender", "open_frame"):
        monkeypatch.setattr(receiver, name, counted(name, getattr(receiver, name)))
    flood, ben = [ear.sender(ANA, 1000 + n) for n in range(150)], ear.sender(BEN, 12)
    ear.receiver.speaks(12, BEN)
    for n in range(6_000):
        if n % 60 == 0:
            ear.take(ben.datagram(next(ear.opus)), after_s=0.0)
        ear.take(flood[n * 7 % len(flood)].datagram(next(ear.opus)), after_s=2.0 / 6_000)
    # In two seconds, or three that are counted, of two people.
    assert len(tries) <= 3 * 2 * MOST_PER_S
    ear.rest(0.5)
    assert ear.frames_of(BEN) == 100
    assert_each_datagram_has_one_fate(ear)


@pytest.fixture
def roster() -> Roster:
    """A room of nobody."""
    return Roster()


@pytest.mark.slow
@pytest.mark.parametrize("announced", [True, False])
def test_a_flood_on_many_ssrcs_is_one_sender_s(roster: Roster, *, announced: bool) -> None:
    """A modified client may send each packet on another SSRC. Its key tells whose they are, and nothing of it stays."""
    ear = Ear()
    spare = 5
    for n in range(MOST_PER_S + spare):
        sender = ear.sender(ANA, 1000 + n)
        if announced:
            ear.receiver.speaks(sender.ssrc, ANA)
        ear.take(sender.datagram(next(ear.opus)), after_s=0.0)
    assert ear.counters.excess + ear.counters.held == spare
    for n in range(100):
        roster.speaks(n, ANA)
    assert roster.ssrcs_of(ANA) == tuple(range(100 - MOST_SSRCS, 100))
    assert_each_datagram_has_one_fate(ear)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.one_of(st.binary(max_size=80), st.integers(0, 30)), max_size=40), st.randoms())
def test_whatever_comes_nothing_raises_and_each_datagram_has_one_fate(
    script: list[bytes | int], random: object
) -> None:
    """Invalid, incomplete, repeated and mixed-up packets raise nothing, and each datagram is counted once."""
    ear = Ear(room=_ROOM)
    ana = ear.sender(ANA, 11)
    ear.receiver.speaks(11, ANA)
    sent = [ana.datagram(_FRAMES[n % len(_FRAMES)], padding=n % 5) for n in range(31)]
    for item in script:
        if isinstance(item, int):
            ear.take(sent[item])
        else:
            ear.take(item)
            ear.take(b"\x90\x78" + item)
            ear.take(sent[len(item) % 31][: 12 + len(item)])
    assert_each_datagram_has_one_fate(ear)


_ROOM = DaveRoom(ANA, BEN)


_FRAMES = [frame for frame, _ in zip(tone_packets(), range(6), strict=False)] + [SILENCE_FRAME]


def frame(n: int, at: float = 0.0) -> HeldFrame:
    return HeldFrame(n, n * 960, b"sealed %d" % n, at, at)


def test_leaving_silences_every_ssrc(roster: Roster) -> None:
    roster.speaks(77, 3)
    roster.speaks(78, 3)
    assert sorted(roster.left(3)) == [77, 78]
    assert roster.user_of(77) is None
    assert roster.members == frozenset()


def test_only_the_latest_half_second_waits(roster: Roster) -> None:
    for n in range(HELD_FRAMES + 7):
        roster.hold(77, frame(n))
    assert roster.dropped == 7
    assert roster.speaks(77, 3)[0].sequence == 7


def test_a_new_connection_forgets_everything(roster: Roster) -> None:
    roster.speaks(77, 3)
    roster.hold(78, frame(0))
    roster.clear()
    assert roster.user_of(77) is None
    assert roster.dropped == 1
    assert roster.speaks(78, 3) == ()


def test_keys_are_tried_on_every_early_frame_then_once_a_second(roster: Roster) -> None:
    """Keys are tried on each of an SSRC's first frames, and then once a second, in case no key opens it (an excluded
    person).
    """
    tries = sum(roster.may_try(77, n * 0.02) for n in range(50 * 10))
    assert HELD_FRAMES + 8 <= tries <= HELD_FRAMES + 11


def test_the_keys_of_the_unplaced_are_tried_first(roster: Roster) -> None:
    roster.joined({1, 2, 3, 4})
    roster.speaks(77, 1)
    roster.speaks(78, 2)
    assert set(roster.candidates()[:2]) == {3, 4}


def test_invented_ssrcs_do_not_fill_the_memory(roster: Roster) -> None:
    for ssrc in range(5000):
        roster.hold(ssrc, frame(0))
    assert roster.dropped == 5000 - 200
    assert not roster.may_try(4999, 0.0)
    roster.expire(100.0)
    assert roster.dropped == 5000
    assert roster.may_try(4999, 100.0)
