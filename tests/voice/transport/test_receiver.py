"""The whole receive path with encrypted datagrams: each person's audio comes out, and everything else is counted."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fakes.dave_room import BOT_ID, DaveRoom, Keys, Sender
from voice.audio import DISCORD_FRAME_SAMPLES, LISTEN_FRAME_SAMPLES
from voice.transport.audio_events import AudioEvent, SpeakerLeft, SpeechFrames, TalkspurtEnded
from voice.transport.counters import PacketCounters
from voice.transport.opus import SILENCE_FRAME, Encoder
from voice.transport.receiver import Receiver
from voice.transport.watchdog import NobodyHeard, RecoverGroup, SpeakerNotHeard, WatchdogFinding

if TYPE_CHECKING:
    from collections.abc import Iterator

ANA, BEN, BOTTY = 2001, 2002, 2003
FATES = (
    "decoded", "foreign", "rtcp", "video", "malformed", "excluded", "transport_failures", "not_ready",
    "dave_failures", "clear", "unknown_ssrc", "late", "duplicate", "silence", "padding", "undecodable", "discarded",
)  # fmt: skip


def tone_packets(hz: float = 440.0) -> Iterator[bytes]:
    """Yield Opus frames of an endless sine."""
    encoder, at = Encoder(), 0
    while True:
        t = np.arange(at, at + DISCORD_FRAME_SAMPLES) / 48_000
        at += DISCORD_FRAME_SAMPLES
        yield encoder.encode((9000 * np.sin(2 * np.pi * hz * t)).astype(np.int16))


@dataclass
class Ear:
    """A receiver with a clock that the test moves, in a room of real DAVE sessions."""

    room: DaveRoom = field(default_factory=lambda: DaveRoom(ANA, BEN))
    excluded: set[int] = field(default_factory=set)
    now: float = 100.0
    heard: list[AudioEvent] = field(default_factory=list)
    batches: int = 0

    def __post_init__(self) -> None:
        self.keys = Keys(dave_session=self.room.bot)
        self.receiver = Receiver(
            deliver=self._deliver,
            is_excluded=self.excluded.__contains__,
            clock=lambda: self.now,
        )
        self.receiver.joined({ANA, BEN})
        self.opus = tone_packets()

    def _deliver(self, batch: object) -> None:
        assert isinstance(batch, list)
        self.heard += batch
        self.batches += 1

    def sender(self, user_id: int, ssrc: int) -> Sender:
        return Sender(user_id, ssrc, self.room.sessions[user_id], self.keys)

    def take(self, datagram: bytes, *, after_s: float = 0.02) -> None:
        self.receiver.datagram(datagram, self.keys)
        self.receiver.flush()
        self.now += after_s

    def say(self, sender: Sender, frames: int, **how: int) -> None:
        for _ in range(frames):
            self.take(sender.datagram(next(self.opus), **how))  # type: ignore[arg-type]

    def fall_silent(self, sender: Sender) -> None:
        for _ in range(5):
            self.take(sender.datagram(SILENCE_FRAME))
        self.rest(0.3)

    def rest(self, seconds: float) -> None:
        until = self.now + seconds
        while self.now < until:
            self.now += min(self.receiver.flush(), until - self.now + 0.001)
        self.receiver.flush()

    def speech_of(self, user_id: int) -> list[SpeechFrames]:
        return [item for item in self.heard if isinstance(item, SpeechFrames) and item.user_id == user_id]

    def frames_of(self, user_id: int) -> int:
        return sum(len(item.pcm) for item in self.speech_of(user_id)) // LISTEN_FRAME_SAMPLES

    def ends(self) -> list[TalkspurtEnded]:
        return [item for item in self.heard if isinstance(item, TalkspurtEnded)]

    @property
    def counters(self) -> PacketCounters:
        return self.receiver.counters()


def assert_each_datagram_has_one_fate(ear: Ear) -> None:
    ear.rest(5.0)
    ear.receiver.pause()
    ear.receiver.reset()
    counts = ear.counters.as_dict()
    assert counts["received"] == sum(counts[fate] for fate in FATES), counts


def test_a_talkspurt_is_heard_whole() -> None:
    """A talkspurt of 50 frames and 5 silence frames gives 1.1 s of one person's contiguous tone, and then its end."""
    ear = Ear()
    ana = ear.sender(ANA, 11)
    ear.receiver.speaks(11, ANA)
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


def test_padding_and_extensions_cost_nothing() -> None:
    """RTP padding and the extension's body are removed before DAVE gets the frame."""
    ear = Ear()
    ana = ear.sender(ANA, 11)
    ear.receiver.speaks(11, ANA)
    for n in range(60):
        padding, extension = n % 8, b"\x51\x00\x00\x90" * (n % 3)
        ear.take(ana.datagram(next(ear.opus), padding=padding, extension=extension))
    ear.fall_silent(ana)
    assert ear.frames_of(ANA) == 65
    assert ear.counters.dave_failures == 0
    assert ear.counters.padded == 52


def test_two_people_at_once_are_told_apart() -> None:
    ear = Ear()
    ana, ben = ear.sender(ANA, 11), ear.sender(BEN, 12)
    ear.receiver.speaks(11, ANA)
    ear.receiver.speaks(12, BEN)
    low, high = tone_packets(300.0), tone_packets(900.0)
    for _ in range(50):
        ear.take(ana.datagram(next(low)), after_s=0.01)
        ear.take(ben.datagram(next(high)), after_s=0.01)
    ear.rest(0.5)
    for user_id, hz in ((ANA, 300), (BEN, 900)):
        pcm = np.concatenate([item.pcm for item in ear.speech_of(user_id)])[1600:]
        assert abs(np.argmax(np.abs(np.fft.rfft(pcm))) * 16_000 / len(pcm) - hz) < 3


def test_loss_and_reordering_leave_every_frame_in_place() -> None:
    """With one packet in ten lost and one in ten overtaken, missing frames are recovered or concealed and no time is
    lost.
    """
    ear = Ear()
    ana = ear.sender(ANA, 11)
    ear.receiver.speaks(11, ANA)
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
    assert sum(item.concealed_samples for item in ear.speech_of(ANA)) == 320 * ear.counters.concealed
    assert_each_datagram_has_one_fate(ear)


def test_keys_are_read_live_through_two_renewals() -> None:
    """No frame is lost if the group enters a new epoch and the transport's key changes during speech."""
    ear = Ear()
    ana = ear.sender(ANA, 11)
    ear.receiver.speaks(11, ANA)
    ear.say(ana, 10)
    ear.room.renew()
    ear.say(ana, 10)
    ear.keys.secret_key = [7] * 32
    ear.say(ana, 10)
    ear.rest(0.5)
    assert ear.frames_of(ANA) == 30
    assert ear.counters.dave_failures == ear.counters.transport_failures == 0


def test_frame_from_before_the_renewal_is_still_heard() -> None:
    ear = Ear()
    ana = ear.sender(ANA, 11)
    ear.receiver.speaks(11, ANA)
    ear.say(ana, 5)
    late = ana.datagram(next(ear.opus))
    ear.room.renew()
    ear.take(late)
    ear.rest(0.5)
    assert ear.frames_of(ANA) == 6


def test_packets_that_overtake_op_5_are_kept() -> None:
    """Frames that come before op 5 names their sender are kept, because the key already identifies the sender."""
    ear = Ear()
    ana = ear.sender(ANA, 11)
    ear.say(ana, 3)
    ear.receiver.speaks(11, ANA)
    ear.say(ana, 7)
    ear.rest(0.5)
    assert ear.frames_of(ANA) == 10
    assert ear.speech_of(ANA)[0].captured_at == pytest.approx(100.0)
    assert ear.counters.unknown_ssrc == 0


def test_without_op_5_the_key_tells_who_speaks() -> None:
    """Without op 5, as after a restart during speech, each of two members is identified by their own key."""
    ear = Ear()
    ana, ben = ear.sender(ANA, 11), ear.sender(BEN, 12)
    for _ in range(20):
        ear.take(ana.datagram(next(ear.opus)))
        ear.take(ben.datagram(next(ear.opus)))
    ear.rest(0.5)
    assert ear.frames_of(ANA) == ear.frames_of(BEN) == 20
    assert {item.ssrc for item in ear.speech_of(BEN)} == {12}


def test_frames_from_before_the_group_use_up_no_tries() -> None:
    """Frames from before the group is ready do not use up the tries. The first frame afterwards identifies
    the sender.
    """
    ear = Ear()
    ana = ear.sender(ANA, 11)
    for unready in (None, DaveRoom().bot):
        ear.keys.dave_session = unready
        ear.say(ana, 40)
    ear.keys.dave_session = ear.room.bot
    ear.say(ana, 5)
    ear.rest(0.5)
    assert ear.frames_of(ANA) == 5


def test_keys_are_tried_anew_once_everybody_sends_with_them() -> None:
    """Keys are tried again after op 22, because the others use their old keys until the slowest member is ready."""
    ear = Ear()
    ana = ear.sender(ANA, 11)
    ana.session = DaveRoom(ANA).sessions[ANA]
    ear.say(ana, 40)
    ana.session = ear.room.sessions[ANA]
    ear.receiver.rekeyed()
    ear.say(ana, 5)
    ear.rest(0.5)
    assert ear.frames_of(ANA) == 5


def test_sender_who_is_named_late_is_heard_from_the_start() -> None:
    """If a member is named half a second late, the held frames are delivered with their own times."""
    ear = Ear()
    cai = Sender(2009, 19, ear.room.add(2009), ear.keys)
    ear.say(cai, 20)
    ear.receiver.speaks(19, 2009)
    ear.say(cai, 5)
    ear.rest(0.5)
    assert ear.frames_of(2009) == 25
    assert ear.speech_of(2009)[0].captured_at == pytest.approx(100.0)


def test_nobody_s_frames_are_given_up() -> None:
    """If no member's key opens an SSRC, 25 of its frames wait, and after a while they are dropped and counted."""
    ear = Ear()
    stranger = Sender(2009, 19, DaveRoom(2009).sessions[2009], ear.keys)
    ear.say(stranger, 40)
    ear.rest(3.0)
    assert ear.counters.unknown_ssrc == 40
    assert ear.heard == []
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
    ear = Ear()
    ana = ear.sender(ANA, 11)
    ear.receiver.speaks(11, ANA)
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


def test_wrong_transport_key_is_counted() -> None:
    ear = Ear()
    ana = ear.sender(ANA, 11)
    ear.receiver.speaks(11, ANA)
    ear.take(ana.datagram(next(ear.opus), secret_key=[9] * 32))
    assert ear.counters.transport_failures == 1
    ear.keys.secret_key = object()  # type: ignore[assignment]  # as discord.py has it before op 4
    ear.receiver.datagram(ana.datagram(next(ear.opus), secret_key=[9] * 32), ear.keys)
    assert ear.counters.transport_failures == 2
    assert ear.heard == []


def test_wrong_sender_key_is_counted_and_raises_recovery() -> None:
    """After 36 frames in a row that the sender's key does not open, the watchdog asks for a new group."""
    ear = Ear()
    fake = Sender(ANA, 11, DaveRoom(ANA).sessions[ANA], ear.keys)
    ear.receiver.speaks(11, ANA)

    def verdicts() -> list[object]:
        return list(ear.receiver.check(connected=True, runner_alive=True, in_transition=False))

    ear.say(fake, 35)
    assert verdicts() == []
    ear.say(fake, 1)
    assert verdicts() == [RecoverGroup(ANA, 36)]
    assert ear.counters.dave_failures == 36
    assert ear.heard == []


def test_announced_and_never_heard_raises_the_alarm() -> None:
    ear = Ear()
    ear.receiver.speaks(11, ANA)
    ear.receiver.speaks(12, BEN, announced=False)
    ear.rest(4.0)
    assert ear.receiver.check(connected=True, runner_alive=True, in_transition=False) == [SpeakerNotHeard(ANA, 100.0)]


def test_other_traffic_is_counted_by_kind() -> None:
    """RTCP, video, discovery answers and incomplete packets are counted by kind and never decrypted."""
    ear = Ear()
    ana = ear.sender(ANA, 11)
    for datagram in (
        b"\x80\xc8" + bytes(40),
        ana.datagram(b"\x90video", kind=0x67),
        b"\x00\x02\x00\x46" + bytes(70),
        ana.datagram(b"x")[:20],
        ana.datagram(b"x", padding=200)[:0],
    ):
        ear.take(datagram)
    counts = ear.counters
    assert (counts.rtcp, counts.video, counts.foreign, counts.malformed) == (1, 1, 2, 1)
    assert_each_datagram_has_one_fate(ear)


def test_silence_between_talkspurts_starts_nothing() -> None:
    ear = Ear()
    ana = ear.sender(ANA, 11)
    ear.receiver.speaks(11, ANA)
    for _ in range(20):
        ear.take(ana.datagram(SILENCE_FRAME))
    ear.take(ear.sender(BEN, 12).datagram(SILENCE_FRAME))
    assert ear.heard == []
    assert ear.counters.silence == 21


def test_version_0_is_heard_in_the_clear() -> None:
    """After a downgrade to version 0, clear frames are heard, and late encrypted frames are still decrypted."""
    ear = Ear()
    ana = ear.sender(ANA, 11)
    ear.receiver.speaks(11, ANA)
    ear.keys.dave_protocol_version = 0
    ear.say(ana, 5)
    for _ in range(5):
        ear.take(ana.datagram(next(ear.opus), clear=True))
    ear.rest(0.5)
    assert ear.frames_of(ANA) == 10
    assert ear.counters.dave_failures == 0


def test_ciphertext_never_reaches_opus() -> None:
    """At version 0 without a session, an encrypted frame is dropped and not decoded into noise."""
    ear = Ear()
    ana = ear.sender(ANA, 11)
    ear.receiver.speaks(11, ANA)
    ear.keys.dave_protocol_version = 0
    ear.keys.dave_session = None
    ear.say(ana, 5)
    assert ear.counters.not_ready == 5
    assert ear.counters.undecodable == ear.counters.decoded == 0


def test_upgrade_hears_the_clear_frames_that_are_under_way() -> None:
    """During an upgrade, clear frames are still accepted, because the group is not ready yet."""
    ear = Ear()
    ana = ear.sender(ANA, 11)
    ear.receiver.speaks(11, ANA)
    fresh = DaveRoom().bot
    ear.keys.dave_session, ear.keys.dave_downgraded = fresh, True
    ear.take(ana.datagram(next(ear.opus), clear=True))
    ear.take(ana.datagram(next(ear.opus)))
    ear.keys.dave_downgraded = False
    ear.take(ana.datagram(next(ear.opus), clear=True))
    ear.rest(0.5)
    assert ear.counters.decoded == 1
    assert (ear.counters.not_ready, ear.counters.clear) == (1, 1)


def test_clear_frames_are_refused_where_encryption_is_on() -> None:
    ear = Ear()
    ana = ear.sender(ANA, 11)
    ear.receiver.speaks(11, ANA)
    for _ in range(100):
        ear.take(ana.datagram(next(ear.opus), clear=True))
    ear.take(ana.datagram(b"\x78", clear=True))
    ear.rest(20.0)
    assert ear.frames_of(ANA) == 0
    assert (ear.counters.clear, ear.counters.silence, ear.counters.dave_failures) == (100, 1, 0)
    findings = ear.receiver.check(connected=True, runner_alive=True, in_transition=False)
    assert [type(finding) for finding in findings] == [SpeakerNotHeard]
    assert_each_datagram_has_one_fate(ear)


def press_to_talk(ear: Ear, sender: Sender, frames: list[bytes], **how: bool) -> list[WatchdogFinding]:
    """Announce a speaker (op 5), send the frames, wait, and return what the watchdog found by then."""
    ear.receiver.speaks(sender.ssrc, sender.user_id)
    for frame in frames:
        ear.take(sender.datagram(frame, **how))  # type: ignore[arg-type]
    ear.rest(5.0)
    return ear.receiver.check(connected=True, runner_alive=True, in_transition=False)


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


@pytest.mark.parametrize("frame", [SILENCE_FRAME, b"\xf8", b""])
def test_a_muted_microphone_is_no_reason_for_anything(frame: bytes) -> None:
    """Push-to-talk over a muted microphone brings silence, tiny frames or nothing but padding: the way works."""
    ear = Ear()
    ana = ear.sender(ANA, 11)
    for _ in range(5):
        ear.receiver.speaks(11, ANA)
        for _ in range(5):
            ear.take(ana.datagram(frame, clear=True, padding=3))
        ear.rest(5.0)
        assert ear.receiver.check(connected=True, runner_alive=True, in_transition=False) == []


def test_silence_after_frames_that_no_key_opens_hides_nothing() -> None:
    """Silence is never encrypted, so it proves nothing of the keys."""
    ear = Ear()
    fake = Sender(ANA, 11, DaveRoom(ANA).sessions[ANA], ear.keys)
    talkspurt = [next(ear.opus) for _ in range(10)] + [SILENCE_FRAME] * 5
    assert [type(found) for found in press_to_talk(ear, fake, talkspurt)] == [SpeakerNotHeard]
    assert [type(found) for found in press_to_talk(ear, fake, talkspurt)] == [SpeakerNotHeard, NobodyHeard]


def test_frames_from_before_op_5_count_for_the_one_it_names() -> None:
    ear = Ear()
    ana = ear.sender(ANA, 11)
    for _ in range(3):
        ear.take(ana.datagram(next(ear.opus), clear=True))
    for ssrc in (11, 12):
        assert [type(found) for found in press_to_talk(ear, ear.sender(ANA, ssrc), [])] == [SpeakerNotHeard]


def test_clear_frames_from_before_the_group_recover_nothing() -> None:
    ear = Ear()
    ana = ear.sender(ANA, 11)
    ear.receiver.speaks(11, ANA, announced=False)
    ear.keys.dave_session = DaveRoom().bot
    for _ in range(1000):
        ear.take(ana.datagram(next(ear.opus), clear=True))
    assert not ear.receiver.check(connected=True, runner_alive=True, in_transition=False)


def test_clear_frames_between_encrypted_ones_put_no_words_into_a_mouth() -> None:
    """Frames of the server's own among a person's are not heard, and the person's are, each in its place."""
    ear = Ear()
    ana = ear.sender(ANA, 11)
    ear.receiver.speaks(11, ANA)
    forged = list(itertools.islice(tone_packets(3000.0), 20))
    for n in range(100):
        ear.take(ana.datagram(forged[n // 5], clear=True) if n % 5 == 4 else ana.datagram(next(ear.opus)))
    ear.rest(0.5)
    assert (ear.counters.decoded, ear.counters.clear, ear.counters.lost) == (80, 20, 19)
    sound = np.concatenate([item.pcm for item in ear.speech_of(ANA)])
    spectrum = np.abs(np.fft.rfft(sound.astype(float)))
    at = np.fft.rfftfreq(len(sound), 1 / 16_000)
    assert spectrum[(at > 2800) & (at < 3200)].max() < 0.05 * spectrum[(at > 400) & (at < 480)].max()


@pytest.mark.parametrize("extension", [b"", bytes(8)])
def test_bursts_of_padding_are_no_loss(extension: bytes) -> None:
    """Packets that are nothing but padding use up numbers. The speech before and after them is whole, at once."""
    ear = Ear()
    ana = ear.sender(ANA, 11)
    ear.receiver.speaks(11, ANA)
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


def test_padding_in_the_middle_of_speech_keeps_nobody_waiting() -> None:
    ear = Ear()
    ana = ear.sender(ANA, 11)
    ear.receiver.speaks(11, ANA)
    ear.say(ana, 10)
    for _ in range(20):
        ear.take(ana.datagram(b"", padding=255, clear=True), after_s=0.0005)
        ana.timestamp -= 960
    before = ear.frames_of(ANA)
    ear.say(ana, 10)
    ear.rest(0.04)
    assert ear.frames_of(ANA) == 20 > before
    assert len(ear.ends()) == ear.counters.lost == ear.counters.concealed == 0
    assert_each_datagram_has_one_fate(ear)


def test_copies_are_duplicates_and_no_failures() -> None:
    """A copy of a packet is recognised before decryption, because it cannot be decrypted a second time."""
    ear = Ear()
    ana = ear.sender(ANA, 11)
    ear.receiver.speaks(11, ANA)
    for _ in range(10):
        datagram = ana.datagram(next(ear.opus))
        ear.take(datagram, after_s=0.0)
        ear.take(datagram)
    ear.rest(0.5)
    assert ear.frames_of(ANA) == 10
    assert (ear.counters.duplicate, ear.counters.dave_failures) == (10, 0)


def test_leaving_ends_what_was_said() -> None:
    """If a person leaves, waiting frames are delivered, then the talkspurt ends, then the person has left."""
    ear = Ear()
    ana = ear.sender(ANA, 11)
    ear.receiver.speaks(11, ANA)
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


def test_reset_forgets_the_old_connection() -> None:
    ear = Ear()
    ana = ear.sender(ANA, 11)
    ear.receiver.speaks(11, ANA)
    ear.say(ana, 5)
    ear.receiver.reset()
    assert isinstance(ear.heard[-1], TalkspurtEnded)
    assert ear.receiver.members == frozenset()
    ear.receiver.joined({ANA})
    ear.receiver.speaks(31, ANA)
    ear.say(ear.sender(ANA, 31), 5)
    ear.rest(0.5)
    assert ear.frames_of(ANA) == 10


def test_rejoining_on_another_ssrc_ends_the_old_stream() -> None:
    ear = Ear()
    ear.receiver.speaks(11, ANA)
    ear.say(ear.sender(ANA, 11), 5)
    ear.receiver.speaks(13, ANA)
    ear.say(ear.sender(ANA, 13), 5)
    ear.rest(0.5)
    assert [end.ssrc for end in ear.ends()] == [11, 13]


def test_ssrc_that_changes_hands() -> None:
    ear = Ear()
    ear.receiver.speaks(11, ANA)
    ear.say(ear.sender(ANA, 11), 5)
    ear.receiver.speaks(11, BEN)
    ear.say(ear.sender(BEN, 11), 5)
    ear.rest(0.5)
    assert ear.frames_of(ANA) == ear.frames_of(BEN) == 5


def test_sound_is_handed_on_in_batches() -> None:
    """The sound of ten people at once is delivered in fifty batches a second, not five hundred."""
    ear = Ear()
    senders = []
    for n in range(10):
        user_id = 3000 + n
        senders.append(Sender(user_id, 100 + n, ear.room.add(user_id), ear.keys))
        ear.receiver.speaks(100 + n, user_id)
    for _ in range(50):
        for sender in senders:
            ear.take(sender.datagram(next(ear.opus)), after_s=0.002)
    assert 40 <= ear.batches <= 52
    ear.rest(0.5)
    assert all(ear.frames_of(sender.user_id) == 50 for sender in senders)


def test_many_people_s_sound_is_handed_on_in_few_batches() -> None:
    """A hundred speakers are handed on in one batch every 20 ms too, each whole and in order."""
    users = list(range(3001, 3101))
    ear = Ear()
    ear.receiver.joined(users)
    ear.keys.dave_protocol_version, ear.keys.dave_session = 0, None
    senders = [Sender(user_id, user_id, None, ear.keys) for user_id in users]
    for sender in senders:
        ear.receiver.speaks(sender.ssrc, sender.user_id)
    frame = next(ear.opus)
    for _ in range(25):
        for sender in senders:
            ear.take(sender.datagram(frame, clear=True), after_s=0.0002)
    assert 20 <= ear.batches <= 27
    ear.rest(0.5)
    for user_id in users:
        assert ear.frames_of(user_id) == 25
        starts = [item.captured_at for item in ear.speech_of(user_id)]
        assert starts == sorted(starts)
    assert len(ear.ends()) == 100


def test_counter_names_are_fates_or_figures() -> None:
    """Every fate that the tests add up is a counter, so that a report can show where packets went."""
    names = {field.name for field in fields(PacketCounters)}
    assert set(FATES) <= names
    assert BOT_ID not in (ANA, BEN, BOTTY)


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
