"""One voice session, tested without sockets: keys, speakers, and packets whose speaker is not known yet."""

from __future__ import annotations

import pytest

from rehearsal.people.rtp import MODE, PacketEncryptor
from rehearsal.people.voice_access import VoiceServerAccess
from rehearsal.people.voice_session import HELD_PACKETS, PersonPacketCounts, ReceivedOpus, VoiceSessionState
from tests.rehearsal.people.exchange import CHANNEL, Exchange
from voice.transport.opus import SILENCE_FRAME

ADA, BEN = 41, 42
BEN_SSRC = 1004
KEY = bytes(range(32))
OPUS = bytes.fromhex("48") + bytes(range(60))


def described(*, dave_version: int = 0) -> VoiceSessionState:
    """Return Ada's session after op 4."""
    call = VoiceSessionState(
        VoiceServerAccess(ADA, 500, CHANNEL, "session", "127.0.0.1:1", "token"), PersonPacketCounts()
    )
    call.handle_json(2, {"ssrc": 1000, "ip": "127.0.0.1", "port": 5, "modes": ["other", MODE]})
    call.handle_json(4, {"secret_key": list(KEY), "dave_protocol_version": dave_version})
    return call


def test_a_server_without_our_mode_is_refused() -> None:
    """A server that does not offer our transport encryption is refused."""
    call = VoiceSessionState(
        VoiceServerAccess(ADA, 500, CHANNEL, "session", "127.0.0.1:1", "token"), PersonPacketCounts()
    )
    with pytest.raises(ValueError, match=MODE):
        call.handle_json(2, {"ssrc": 1, "ip": "127.0.0.1", "port": 5, "modes": ["other"]})


def test_nothing_leaves_before_the_key() -> None:
    """Before op 4 there is no key, so nothing can be sent or received."""
    call = VoiceSessionState(
        VoiceServerAccess(ADA, 500, CHANNEL, "session", "127.0.0.1:1", "token"), PersonPacketCounts()
    )
    assert not call.can_send
    assert call.seal(OPUS) is None
    assert call.open(PacketEncryptor(KEY, BEN_SSRC).seal(OPUS), 1.0) == []


def test_a_known_speaker_is_heard() -> None:
    """After op 5, packets with the announced SSRC belong to that user."""
    call = described()
    call.handle_json(5, {"user_id": str(BEN), "ssrc": BEN_SSRC, "speaking": 1})
    assert call.open(PacketEncryptor(KEY, BEN_SSRC).seal(OPUS), 1.5) == [ReceivedOpus(BEN, BEN_SSRC, 1, 960, OPUS, 1.5)]


def test_sound_that_overtakes_op_5_is_held() -> None:
    """Packets that arrive before op 5 are held. They are then returned in order with their own arrival times."""
    call = described()
    sealer = PacketEncryptor(KEY, BEN_SSRC)
    assert call.open(sealer.seal(OPUS), 1.0) == []
    assert call.open(sealer.seal(OPUS), 1.02) == []
    call.handle_json(5, {"user_id": str(BEN), "ssrc": BEN_SSRC, "speaking": 1})
    heard = call.open(sealer.seal(OPUS), 1.04)
    assert [(each.sequence, each.arrived_at) for each in heard] == [(1, 1.0), (2, 1.02), (3, 1.04)]


def test_an_unknown_ssrc_is_found_by_its_key() -> None:
    """With DAVE, the sender's key identifies the speaker of an unknown SSRC before op 5."""
    exchange = Exchange()
    ada, ben = exchange.join(ADA), exchange.join(BEN)
    call = described()
    call.dave = ada
    call.handle_json(11, {"user_ids": [str(BEN), "77"]})
    frame = ben.encrypt(OPUS)
    assert frame is not None
    (heard,) = call.open(PacketEncryptor(KEY, BEN_SSRC).seal(frame), 1.0)
    assert (heard.user_id, heard.opus) == (BEN, OPUS)
    assert call.counts.dave_failures == 0


def test_a_flood_without_a_name_is_bounded() -> None:
    """Half a second of packets without a known speaker is held. Further packets are counted as nameless."""
    call = described()
    sealer = PacketEncryptor(KEY, BEN_SSRC)
    for index in range(3 * HELD_PACKETS):
        call.open(sealer.seal(OPUS), index * 0.02)
    call.handle_json(5, {"user_id": str(BEN), "ssrc": BEN_SSRC, "speaking": 1})
    heard = call.open(sealer.seal(OPUS), 2.0)
    assert len(heard) == HELD_PACKETS + 1
    assert call.counts.nameless == 2 * HELD_PACKETS


def test_a_frame_that_does_not_decrypt_is_counted() -> None:
    """A frame that cannot be decrypted is counted and never passed on as Opus."""
    exchange = Exchange()
    ada, ben = exchange.join(ADA), exchange.join(BEN)
    call = described()
    call.dave = ada
    call.handle_json(5, {"user_id": str(BEN), "ssrc": BEN_SSRC, "speaking": 1})
    frame = ben.encrypt(OPUS)
    assert frame is not None
    damaged = frame[:10] + bytes([frame[10] ^ 1]) + frame[11:]
    sealer = PacketEncryptor(KEY, BEN_SSRC)
    assert call.open(sealer.seal(damaged), 1.0) == []
    assert call.open(sealer.seal(frame), 1.02)[0].opus == OPUS
    assert (call.counts.received, call.counts.dave_failures) == (2, 1)


def test_who_leaves_is_forgotten() -> None:
    """After op 13 neither the member nor the member's SSRC is known."""
    call = described()
    call.handle_json(5, {"user_id": str(BEN), "ssrc": BEN_SSRC, "speaking": 1})
    call.handle_json(13, {"user_id": str(BEN)})
    assert (call.members, call.speakers) == (set(), {})


def test_frames_without_keys_let_the_clock_run() -> None:
    """While there is no group, the timestamp increases with each unsent frame, so later frames have the right time."""
    call = described(dave_version=1)
    assert call.seal(OPUS) is None
    sealed = call.seal(SILENCE_FRAME)
    assert sealed is not None
    assert int.from_bytes(sealed[4:8], "big") == 2 * 960
    assert int.from_bytes(sealed[2:4], "big") == 1
