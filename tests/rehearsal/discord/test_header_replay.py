"""A recording of real packets' headers is replayed: same padding, extensions, gaps and delays."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from rehearsal.discord.header_replay import HeaderReplay
from rehearsal.discord.network import NetworkConditions
from rehearsal.errors import LocalDiscordError
from tests.rehearsal.discord.test_forwarder import _ADA, _BEN, _Room

if TYPE_CHECKING:
    from pathlib import Path

# At, stream, steps of sequence and timestamp, kind, padding, extension.
PACKETS: list[list[Any]] = [
    [0.0, 0, 1, 0, "e", 0, "bede:9.1"],
    [20.0, 0, 1, 960, "e", 5, "bede:9.1,5.3"],
    [20.1, 0, 1, 0, "p", 255, ""],
    [40.0, 0, 1, 960, "s", 0, "1000#2"],
    [80.0, 0, 2, 1920, "e", 0, ""],
]


def recording(folder: Path, packets: list[list[Any]]) -> Path:
    path = folder / "live.json"
    path.write_text(json.dumps({"format": 1, "packets": packets}), "utf-8")
    return path


def test_a_speaker_s_packets_are_treated_like_the_recorded_ones(tmp_path: Path) -> None:
    room = _Room(NetworkConditions(padding=0.5))
    ada, ben = room.add(_ADA), room.add(_BEN)
    room.forwarder.faults.replay = HeaderReplay.load(recording(tmp_path, PACKETS))
    for number in range(10):
        room.say(ada, b"%d" % number)
    heard = room.heard(ben)
    datagrams = [data for data, to in room.wire.sent if to == ben.address][1:]
    # Before the fourth packet of the recording one is missing, and Ada's fifth takes its place.
    assert [packet.payload for packet in heard][:5] == [b"0", b"1", b"", b"2", b"3"]
    assert [packet.sequence for packet in heard][:5] == [1, 2, 3, 4, 5]
    assert b"4" not in [packet.payload for packet in heard]
    assert [bool(data[0] & 0x20) for data in datagrams][:5] == [False, True, True, False, False]
    assert [bool(data[0] & 0x10) for data in datagrams][:5] == [True, True, False, True, False]
    assert datagrams[3][12:16] == bytes.fromhex("10000002")
    assert datagrams[1][12:16] == bytes.fromhex("bede0002")


def test_delays_are_those_of_the_recording(tmp_path: Path) -> None:
    """A packet that came 30 ms after its time is delayed by so much; a pause of the speaker is no delay."""
    packets = [[at, 0, 1, ticks, "e", 0, ""] for at, ticks in ((0, 0), (50, 960), (52, 960), (3000, 960))]
    (stream,) = HeaderReplay.load(recording(tmp_path, packets)).streams
    assert [round(packet.delay_s, 3) for packet in stream] == [0.0, 0.03, 0.012, 0.0]


@pytest.mark.parametrize(
    "packets",
    [
        [],
        [[0, 0, 1, 0, "p", 10, ""]],
        [[0, 0, 1, 0, "e", 300, ""]],
        [[0, 0, 1, 0, "e", 0, "bede:9.99"]],
        [[0, 0, 1, 0, "e", 0, "bede:99.1"]],
        [[0, 0, 1]],
        ["nonsense"],
        [["x", 0, 1, 0, "e", 0, ""]],
    ],
)
def test_a_file_that_is_no_recording_is_refused(tmp_path: Path, packets: list[Any]) -> None:
    with pytest.raises(LocalDiscordError, match="this is not a recording of `roomtone doctor --live`"):
        HeaderReplay.load(recording(tmp_path, packets))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(LocalDiscordError, match="cannot be read"):
        HeaderReplay.load(tmp_path / "missing.json")
