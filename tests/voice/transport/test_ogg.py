"""The sound of voice messages, from whoever sends them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rehearsal.people.clip import encode_ogg
from tests.voice.recordings import HELLO, bicycle
from voice.audio import DISCORD_RATE_HZ, LISTEN_RATE_HZ, duration_s
from voice.transport.ogg import decode_ogg_opus
from voice.transport.opus import Decoder, OpusError

RECORDING = (HELLO / "2-ada.ogg").read_bytes()


def tone(seconds: float) -> bytes:
    """Return an Ogg Opus file of a tone."""
    times = np.arange(round(seconds * DISCORD_RATE_HZ)) / DISCORD_RATE_HZ
    return encode_ogg(iter([(9_000 * np.sin(2 * np.pi * 200.0 * times)).astype(np.int16)]))


def test_a_recording_sounds_as_another_decoder_reads_it() -> None:
    """PyAV has decoded and resampled the same file: both have the same length and loudness, moment by moment."""
    ours, theirs = decode_ogg_opus(RECORDING, most_s=60.0), bicycle()
    assert ours is not None
    assert duration_s(ours) == pytest.approx(duration_s(theirs), abs=0.1)
    blocks = min(len(ours), len(theirs)) // LISTEN_RATE_HZ * 10
    loudness = [
        np.abs(each[: blocks * LISTEN_RATE_HZ // 10].astype(float).reshape(blocks, -1)).mean(axis=1)
        for each in (ours, theirs)
    ]
    assert np.corrcoef(*loudness)[0, 1] > 0.98


def test_not_much_more_is_decoded_than_is_wanted() -> None:
    """A file of any length takes no more memory than that."""
    pcm = decode_ogg_opus(tone(5.0), most_s=2.0)
    assert pcm is not None
    assert 2.0 <= duration_s(pcm) < 2.2


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"OggS",
        b"RIFF" + bytes(200),
        b"\xff\xfb\x90\x64" * 100,
        RECORDING.replace(b"OpusHead", b"\x01vorbis_", 1),
        # Six channels.
        RECORDING.replace(b"OpusHead\x01\x01", b"OpusHead\x01\x06", 1),
    ],
)
def test_another_format_is_told_apart(content: bytes) -> None:
    """Whatever its name says."""
    assert decode_ogg_opus(content, most_s=60.0) is None


@given(st.data())
def test_damage_costs_sound_and_nothing_else(data: st.DataObject) -> None:
    """A file that is cut off, or in which bytes are others, is read as far as it goes."""
    content = bytearray(RECORDING[: data.draw(st.integers(0, len(RECORDING)))])
    for at in data.draw(st.lists(st.integers(0, max(0, len(content) - 1)), max_size=8)):
        if content:
            content[at] = data.draw(st.integers(0, 255))
    pcm = decode_ogg_opus(bytes(content), most_s=3.0)
    assert pcm is None or duration_s(pcm) < 3.2


@pytest.mark.parametrize("packet", [b"", b"\xff"])
def test_refused_packets_take_up_their_time(packet: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two million bytes of them are no million calls of libopus."""
    tried = []

    def refuse(_: Decoder, refused: bytes) -> None:
        tried.append(refused)
        raise OpusError("No.")

    monkeypatch.setattr(Decoder, "decode", refuse)
    serial = RECORDING[14:18]
    size = 28 + sum(RECORDING[27 : 27 + RECORDING[26]])
    lengths = bytes([len(packet)] * 255)
    page = b"OggS" + bytes(10) + serial + bytes(8) + b"\xff" + lengths + packet * 255
    content = RECORDING[:size] + page * (2_000_000 // len(page))
    assert decode_ogg_opus(content, most_s=121.0) is not None
    assert len(tried) == 121 * 50 + 1


def test_a_packet_that_never_ends_is_read_no_further() -> None:
    """Nor is one of another stream, however long its pages are."""
    size = 28 + sum(RECORDING[27 : 27 + RECORDING[26]])
    page = b"OggS" + bytes(10) + RECORDING[14:18] + bytes(8) + b"\xff" + b"\xff" * 255 + bytes(255 * 255)
    pcm = decode_ogg_opus(RECORDING[:size] + page * 3 + RECORDING[size:], most_s=60.0)
    assert pcm is not None
    assert len(pcm) == 0
