"""Recordings become 20 ms packets, and a bad file raises a clear error."""

from __future__ import annotations

from pathlib import Path

import av
import pytest

from rehearsal.errors import PersonError
from rehearsal.people.clip import FRAME_SAMPLES, Clip
from tests.rehearsal.people.sounds import ogg_of, silence, spoken, tone, write_wav
from voice.transport.opus import Decoder, packet_samples


def test_an_ogg_file_is_taken_packet_by_packet(tmp_path: Path) -> None:
    """An Ogg/Opus file is not encoded again: the clip has the packets of the file."""
    path = tmp_path / "hello.ogg"
    path.write_bytes(ogg_of(spoken()))
    clip = Clip.load(path)
    with av.open(str(path), "r") as container:
        assert clip.packets == tuple(bytes(packet) for packet in container.demux() if packet.size)
    assert {packet_samples(packet) for packet in clip.packets} == {FRAME_SAMPLES}


@pytest.mark.parametrize(("rate_hz", "channels"), [(48_000, 1), (16_000, 1), (44_100, 2)])
def test_any_recording_becomes_a_clip(tmp_path: Path, rate_hz: int, channels: int) -> None:
    """A WAV file of any rate and channel count is encoded when it is loaded."""
    path = write_wav(tmp_path / "hello.wav", tone(0.5, rate_hz), rate_hz, channels)
    clip = Clip.load(path)
    assert {packet_samples(packet) for packet in clip.packets} == {FRAME_SAMPLES}
    assert clip.duration_s == pytest.approx(0.5, abs=0.041)
    heard = Decoder()
    assert sum(len(heard.decode(packet)) for packet in clip.packets) == 320 * len(clip.packets)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "exist"),
        (b"", "played"),
        (b"this is a text, not a sound", "played"),
        (ogg_of(spoken())[:60], "played"),
        (ogg_of(silence(0.5)), "nothing"),
    ],
    ids=["missing", "empty", "text", "truncated", "silent"],
)
def test_a_bad_file_is_one_plain_sentence(tmp_path: Path, content: bytes | None, says: str) -> None:
    """The error message is one line that names the file and the problem."""
    path = tmp_path / "broken.ogg"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(PersonError, match=says) as caught:
        Clip.load(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
