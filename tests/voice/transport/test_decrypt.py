"""How datagrams are classified, which frames can be decrypted with which keys, and which are never treated as audio."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nacl.bindings import crypto_aead_xchacha20poly1305_ietf_encrypt

from tests.fakes.dave_room import BOT_ID, DaveRoom, Keys, Sender
from voice.transport.counters import PacketCounters
from voice.transport.decrypt import (
    DecryptFailure,
    find_sender,
    is_in_group,
    looks_encrypted,
    open_frame,
    open_transport,
)
from voice.transport.opus import SILENCE_FRAME
from voice.transport.rtp import KEY_BYTES, NONCE_BYTES, TAG_BYTES, AudioPacket, PacketOpener, Rejection, frame_of, parse

ANA, BEN = 2001, 2002
OPUS = b"\x78" + bytes(range(60))


def sealed(room: DaveRoom, user_id: int) -> bytes:
    return bytes(room.sessions[user_id].encrypt_opus(OPUS))


@pytest.fixture
def room() -> DaveRoom:
    """A group with Ana in it."""
    return DaveRoom(ANA)


def test_transport_opens_with_the_right_key_alone(room: DaveRoom) -> None:
    keys = Keys(dave_session=room.bot)
    datagram = Sender(ANA, 11, room.sessions[ANA], keys).datagram(OPUS, clear=True, extension=bytes(8))
    packet = parse(datagram)
    assert isinstance(packet, AudioPacket)
    assert open_transport(datagram, packet, keys.secret_key) == bytes(8) + OPUS
    assert open_transport(datagram, packet, [1] * 32) is None
    assert open_transport(datagram, packet, [1] * 31) is None
    assert open_transport(datagram[:-1] + b"\xff", packet, keys.secret_key) is None
    # The extension's preamble is authenticated too.
    assert open_transport(datagram[:13] + b"\x00" + datagram[14:], packet, keys.secret_key) is None


@pytest.mark.parametrize(
    ("version", "ready", "downgraded", "frame", "opened"),
    [
        (1, True, False, "sealed", OPUS),
        (1, True, False, "clear", DecryptFailure.CLEAR),
        (1, True, False, "tiny", SILENCE_FRAME),
        (1, True, False, "silence", SILENCE_FRAME),
        (1, False, False, "sealed", DecryptFailure.NOT_READY),
        (1, False, False, "clear", DecryptFailure.CLEAR),
        (1, False, False, "tiny", SILENCE_FRAME),
        (1, False, False, "silence", SILENCE_FRAME),
        (1, False, True, "clear", OPUS),
        (1, False, True, "sealed", DecryptFailure.NOT_READY),
        (0, True, True, "clear", OPUS),
        (0, True, True, "sealed", OPUS),
        (0, False, True, "clear", OPUS),
        (0, False, True, "sealed", DecryptFailure.NOT_READY),
    ],
)
def test_what_opens_when(
    room: DaveRoom, version: int, ready: bool, downgraded: bool, frame: str, opened: bytes | DecryptFailure
) -> None:
    session = room.bot if ready else DaveRoom().bot
    keys = Keys(dave_session=session, dave_protocol_version=version, dave_downgraded=downgraded)
    sent = {"sealed": sealed(room, ANA), "clear": OPUS, "tiny": OPUS[:3], "silence": SILENCE_FRAME}[frame]
    assert open_frame(sent, ANA, keys) == opened


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("downgraded", [False, True])
@pytest.mark.parametrize("passthrough", [False, True])
def test_clear_frames_are_refused_where_encryption_is_required(
    room: DaveRoom, version: int, downgraded: bool, passthrough: bool
) -> None:
    """With `require_e2ee` no clear frame opens, in no state of the call; sealed frames and silence do."""
    room.bot.set_passthrough_mode(passthrough, 10)
    keys = Keys(dave_session=room.bot, dave_protocol_version=version, dave_downgraded=downgraded, require_e2ee=True)
    assert open_frame(OPUS, ANA, keys) is DecryptFailure.CLEAR
    assert open_frame(OPUS[:3], ANA, keys) == SILENCE_FRAME
    assert open_frame(sealed(room, ANA), ANA, keys) == OPUS
    assert open_frame(SILENCE_FRAME, ANA, keys) == SILENCE_FRAME


def test_without_a_session_only_clear_frames_open_and_only_at_version_0() -> None:
    assert open_frame(OPUS, ANA, Keys(dave_protocol_version=0)) == OPUS
    assert open_frame(OPUS, ANA, Keys()) is DecryptFailure.CLEAR


def test_the_sender_is_found_by_the_key() -> None:
    room = DaveRoom(ANA, BEN)
    keys = Keys(dave_session=room.bot)
    found = find_sender(sealed(room, BEN), [ANA, 999, BEN], keys)
    assert found is not None
    assert (found.user_id, found.frame) == (BEN, OPUS)
    assert find_sender(sealed(room, BEN), [ANA], keys) is None
    assert find_sender(sealed(room, BEN), [BEN], Keys()) is None


def test_davey_uses_the_keys_of_a_commit_at_once(room: DaveRoom) -> None:
    """This is why a davey below 0.2 is required: 0.2 has no key before `execute_transition`, which discord.py 2.7.1
    does not call, and names members by numbers.
    """
    keys = Keys(dave_session=room.bot)
    before = bytes(room.bot.get_epoch_authenticator())
    room.renew()
    assert bytes(room.bot.get_epoch_authenticator()) != before
    assert room.bot.ready
    assert open_frame(sealed(room, ANA), ANA, keys) == OPUS
    assert set(room.bot.get_user_ids()) >= {str(ANA), str(BOT_ID)}


def test_who_is_in_the_group_is_told() -> None:
    """As far as it can be told: not without a session, nor while the event loop changes it."""

    class Changing:
        def get_user_ids(self) -> list[str]:
            raise RuntimeError("Already mutably borrowed")

    session = DaveRoom(ANA).bot
    assert [is_in_group(user_id, Keys(dave_session=session)) for user_id in (ANA, BEN)] == [True, False]
    assert is_in_group(BEN, Keys())
    assert is_in_group(BEN, Keys(dave_session=Changing()))


def test_a_clear_frame_names_nobody() -> None:
    """A clear frame identifies no sender: in passthrough mode every decryptor accepts it, so the first candidate would
    be named.
    """
    room = DaveRoom(ANA, BEN)
    room.bot.set_passthrough_mode(True, 10)
    keys = Keys(dave_session=room.bot)
    assert open_frame(OPUS, ANA, keys) == OPUS
    assert find_sender(OPUS, [ANA, BEN], keys) is None


@pytest.mark.parametrize("require_e2ee", [False, True])
@pytest.mark.parametrize("size", [12, 13, 20, 61])
def test_a_clear_frame_that_ends_like_a_sealed_one_is_refused(size: int, *, require_e2ee: bool) -> None:
    """In passthrough mode, for seconds after each change of the group, a decryptor hands back what is not sealed. A
    frame that only ends like a sealed one opens for nobody, and is no sound of the first person whose key is tried.
    """
    room = DaveRoom(ANA, BEN)
    room.bot.set_passthrough_mode(True, 10)
    keys = Keys(dave_session=room.bot, require_e2ee=require_e2ee)
    forged = OPUS + bytes([size]) + b"\xfa\xfa"
    assert looks_encrypted(forged)
    assert open_frame(forged, ANA, keys) is DecryptFailure.DAVE_FAILED
    assert find_sender(forged, [ANA, BEN], keys) is None
    assert open_frame(sealed(room, BEN), BEN, keys) == OPUS


def test_everything_davey_seals_looks_sealed() -> None:
    session = DaveRoom(ANA).sessions[ANA]
    for size in range(1, 400):
        assert looks_encrypted(bytes(session.encrypt_opus(bytes([0x78]) * size)))


@given(st.binary(max_size=300))
def test_any_bytes_are_judged(frame: bytes) -> None:
    """Any frame is decrypted or refused without an exception."""
    keys = Keys(dave_session=_ROOM.bot)
    for candidate in (frame, frame + b"\xfa\xfa", frame + b"\x0c\xfa\xfa"):
        looks_encrypted(candidate)
        opened = open_frame(candidate, ANA, keys)
        assert isinstance(opened, DecryptFailure) or (opened == SILENCE_FRAME and len(candidate) <= len(SILENCE_FRAME))
        assert find_sender(candidate, [ANA, BEN], keys) is None


_ROOM = DaveRoom(ANA)


_OPENER = PacketOpener()


def _flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


@given(
    st.binary(max_size=1500),
    st.binary(max_size=40),
    st.binary(min_size=NONCE_BYTES, max_size=NONCE_BYTES),
    st.binary(min_size=KEY_BYTES, max_size=KEY_BYTES),
    st.integers(0, 2000),
)
def test_what_was_sealed_opens_and_nothing_else(plain: bytes, header: bytes, nonce: bytes, key: bytes, at: int) -> None:
    sealed = crypto_aead_xchacha20poly1305_ietf_encrypt(plain, header, nonce, key)
    assert _OPENER.open(sealed, header, nonce, key) == plain
    assert _OPENER.open(_flipped(sealed, at % len(sealed)), header, nonce, key) is None
    assert _OPENER.open(sealed, header + b"x", nonce, key) is None
    assert _OPENER.open(sealed, header, _flipped(nonce, 3), key) is None
    assert _OPENER.open(sealed, header, nonce, _flipped(key, 31)) is None
    assert _OPENER.open(sealed, header, nonce, key) == plain


@given(st.binary(max_size=60), st.binary(max_size=40), st.binary(max_size=40))
def test_any_lengths_are_refused_without_an_error(sealed: bytes, nonce: bytes, key: bytes) -> None:
    assert _OPENER.open(sealed, b"", nonce, key) is None


def test_a_text_that_is_too_long_is_refused() -> None:
    assert _OPENER.open(bytes(70_000 + TAG_BYTES), b"", bytes(NONCE_BYTES), bytes(KEY_BYTES)) is None


SEALED = bytes(40)  # some ciphertext, its tag, and the nonce


def header(first: int = 0x80, kind: int = 0x78) -> bytes:
    return struct.pack(">BBHII", first, kind, 0xFFFE, 0xFFFF_FC40, 77)


@pytest.mark.parametrize(
    ("datagram", "header_bytes", "extension_bytes", "padded"),
    [
        pytest.param(header() + SEALED, 12, 0, False, id="a plain packet"),
        pytest.param(header(kind=0xF8) + SEALED, 12, 0, False, id="the marker, as a talkspurt's first packet may have"),
        # The 4-byte preamble belongs to the header, and the rest of an extension to the payload.
        pytest.param(header(0x90) + b"\xbe\xde\x00\x02" + SEALED, 16, 8, False, id="an extension"),
        pytest.param(
            header(0x90) + b"\xbe\xde\x01\x02" + bytes(4 * 0x102) + SEALED, 16, 4 * 0x102, False, id="a long one"
        ),
        pytest.param(
            header(0xB2) + bytes(8) + b"\xbe\xde\x00\x01" + SEALED, 24, 4, True, id="contributing sources, padding"
        ),
    ],
)
def test_an_audio_packet_is_parsed(datagram: bytes, header_bytes: int, extension_bytes: int, padded: bool) -> None:
    assert parse(datagram) == AudioPacket(0xFFFE, 0xFFFF_FC40, 77, header_bytes, extension_bytes, padded)


@pytest.mark.parametrize(
    ("datagram", "reason"),
    [
        (b"", Rejection.FOREIGN),
        (b"\x80", Rejection.FOREIGN),
        (b"\x00\x02\x00\x46" + bytes(70), Rejection.FOREIGN),
        (bytes(8), Rejection.FOREIGN),
        (header(0x40) + SEALED, Rejection.FOREIGN),
        (b"\x80\xc8" + bytes(26), Rejection.RTCP),
        (b"\x81\xc9\x00\x01", Rejection.RTCP),
        (b"\x80\xce" + bytes(26), Rejection.RTCP),
        (header(kind=0x67) + SEALED, Rejection.VIDEO),
        (header(kind=0x69 | 0x80) + SEALED, Rejection.VIDEO),
        (header()[:11], Rejection.MALFORMED),
        (header() + bytes(20), Rejection.MALFORMED),
        (header(0x90), Rejection.MALFORMED),
        (header(0x90) + b"\xbe\xde\x00", Rejection.MALFORMED),
        (header(0x90) + b"\xbe\xde", Rejection.MALFORMED),
        (header(0x90) + b"\xbe\xde\xff\xff" + SEALED, Rejection.MALFORMED),
        (header(0x8F) + SEALED, Rejection.MALFORMED),
    ],
)
def test_what_is_no_audio_says_why(datagram: bytes, reason: Rejection) -> None:
    assert parse(datagram) is reason


def test_every_reason_is_a_counter() -> None:
    counters = PacketCounters()
    for reason in Rejection:
        counters.count(reason)
        assert counters.as_dict()[reason] == 1


@pytest.mark.parametrize(
    ("first", "extension_words", "payload", "frame"),
    [
        (0x80, 0, b"frame", b"frame"),
        (0xA0, 0, b"frame\x01", b"frame"),
        (0xA0, 0, b"frame\x00\x00\x03", b"frame"),
        (0x90, 1, b"EXT1frame", b"frame"),
        (0xB0, 1, b"EXT1frame\x02\x02", b"frame"),
        (0xA0, 0, b"frame\x00", None),
        (0xA0, 0, b"frame\x07", None),
        (0xA0, 0, b"\x01", b""),
        (0xA0, 0, b"\x00\x02", b""),
        (0xB0, 1, b"EXT1\x00\x02", b""),
        (0xA0, 0, b"", None),
        (0x90, 1, b"EXT1", None),
        (0xB0, 1, b"EXT1fr\x03", b""),
        (0xB0, 1, b"EXT1fr\x04", None),
    ],
)
def test_frame_is_cut_out(first: int, extension_words: int, payload: bytes, frame: bytes | None) -> None:
    """The last byte gives the length of the padding, the header that of the extension. An invalid payload gives no
    frame.
    """
    extension = b"\xbe\xde" + struct.pack(">H", extension_words) if first & 0x10 else b""
    packet = parse(header(first) + extension + bytes(4 * extension_words) + SEALED)
    assert isinstance(packet, AudioPacket)
    assert frame_of(packet, payload) == frame


@given(st.binary(max_size=120), st.binary(max_size=80))
def test_any_bytes_are_parsed_or_rejected(datagram: bytes, payload: bytes) -> None:
    """Any bytes are parsed or rejected without an exception, and an accepted packet has room for a tag, a nonce and a
    frame.
    """
    for candidate in (datagram, b"\x80\x78" + datagram, b"\xb1\xf8" + datagram):
        packet = parse(candidate)
        if isinstance(packet, AudioPacket):
            assert len(candidate) > packet.header_bytes + packet.extension_bytes + 20
            frame = frame_of(packet, payload)
            assert frame is None or (frame != b"" and frame in payload)
