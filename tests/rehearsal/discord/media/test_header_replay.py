"""A recording of real packets' headers is replayed: padding, extensions, gaps, delays, kinds, RTCP and late op 5."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from rehearsal.discord.media.header_replay import HeaderReplay
from rehearsal.discord.media.network import NetworkConditions
from rehearsal.discord.media.stream_faults import beep
from rehearsal.errors import LocalDiscordError
from tests.patience import PATIENCE_S
from tests.rehearsal.discord.media.test_forwarder import ADA, BEN, CHLOE, Room
from voice.transport.opus import SILENCE_FRAME

if TYPE_CHECKING:
    from pathlib import Path

# At, stream, steps of sequence and timestamp, kind, padding, extension.
PACKETS: list[list[Any]] = [
    [0.0, 0, 1, 0, "e", 0, "bede:9.1"],
    [20.0, 0, 1, 960, "e", 5, "bede:9.1,5.3"],
    [20.1, 0, 1, 0, "p", 255, ""],
    [40.0, 0, 1, 960, "e", 0, "1000#2"],
    [80.0, 0, 2, 1920, "e", 0, ""],
]


def recording(folder: Path, packets: list[list[Any]], **more: Any) -> Path:
    path = folder / "live.json"
    path.write_text(json.dumps({"format": 1, "packets": packets, **more}), "utf-8")
    return path


def stream_of(kinds: str) -> list[list[Any]]:
    """Return packets of these kinds, 20 ms apart. A capital letter is a packet at the time of the one before."""
    packets: list[list[Any]] = []
    for kind in kinds:
        ticks = 0 if kind.isupper() else 960
        packets.append([(packets[-1][0] if packets else 0.0) + ticks / 48, 0, 1, ticks, kind.lower(), 0, ""])
    return packets


def payloads(folder: Path, kinds: str, said: list[bytes]) -> list[bytes]:
    """Return what Ben gets of what Ada says when her packets are treated like those of these kinds."""
    room = Room(NetworkConditions())
    ada, ben = room.add(ADA), room.add(BEN)
    room.forwarder.faults.replay = HeaderReplay.load(recording(folder, stream_of(kinds)))
    for payload in said:
        room.say(ada, payload)
    return [packet.payload for packet in room.heard(ben)]


def test_a_speaker_s_packets_are_treated_like_the_recorded_ones(tmp_path: Path) -> None:
    room = Room(NetworkConditions(padding=0.5))
    ada, ben = room.add(ADA), room.add(BEN)
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


def test_frames_come_in_the_clear_and_tiny_as_recorded(tmp_path: Path) -> None:
    """The speaker's silence stays silence."""
    assert payloads(tmp_path, "ect", [b"1", b"2", b"3", b"4"]) == [b"1", beep(), b"\xf8", b"4"]
    assert payloads(tmp_path, "c", [b"1", SILENCE_FRAME]) == [beep(), SILENCE_FRAME]


def test_a_muted_microphone_is_silence(tmp_path: Path) -> None:
    assert payloads(tmp_path, "sss", [b"1", b"2", SILENCE_FRAME]) == [SILENCE_FRAME] * 3


def test_the_ends_of_talkspurts_are_the_speaker_s_own(tmp_path: Path) -> None:
    """The recorded silence is that between the speaker's talkspurts, however long these are."""
    said = [b"1", SILENCE_FRAME, SILENCE_FRAME, *(b"%d" % number for number in range(2, 9))]
    assert payloads(tmp_path, "eeecss", said) == [
        b"1", SILENCE_FRAME, SILENCE_FRAME, b"2", b"3", b"4", beep(), b"6", b"7", b"8",
    ]  # fmt: skip


def test_a_burst_comes_where_the_speaker_falls_silent(tmp_path: Path) -> None:
    """Padding and silence in a burst, which take no time, come in addition and with numbers of their own."""
    room = Room(NetworkConditions())
    ada, ben = room.add(ADA), room.add(BEN)
    room.forwarder.faults.replay = HeaderReplay.load(recording(tmp_path, stream_of("eesPSPe")))
    for payload in (b"1", SILENCE_FRAME, b"2"):
        room.say(ada, payload)
    heard = room.heard(ben)
    assert [packet.payload for packet in heard] == [b"1", SILENCE_FRAME, b"", SILENCE_FRAME, b"", b"2"]
    assert [packet.sequence for packet in heard] == [1, 2, 3, 4, 5, 6]


def test_a_recorded_pause_cuts_into_nothing(tmp_path: Path) -> None:
    """The bursts of a pause are passed over with it, while the speaker goes on."""
    said = [b"%d" % number for number in range(8)]
    assert payloads(tmp_path, "eesPSPse", said) == said


def out_of_order() -> list[list[Any]]:
    """Return five packets of which the third came right behind the fourth; the steps count from the highest number."""
    return [
        [0.0, 0, 1, 0, "e", 0, ""],
        [20.0, 0, 1, 960, "e", 0, ""],
        [60.0, 0, 2, 1920, "e", 7, ""],
        [60.1, 0, -1, -960, "e", 3, ""],
        [80.0, 0, 1, 960, "e", 0, ""],
    ]


@pytest.mark.asyncio
async def test_a_packet_that_was_overtaken_is_overtaken_again(tmp_path: Path) -> None:
    """None of the speaker's packets is lost for it, and none of those after it comes later."""
    (stream,) = HeaderReplay.load(recording(tmp_path, out_of_order())).streams
    assert [packet.padding_bytes for packet in stream] == [0, 0, 3, 7, 0]
    assert [packet.behind for packet in stream] == [0, 0, 1, 0, 0]
    assert {packet.lost_before for packet in stream} == {packet.delay_s for packet in stream} == {0}
    room = Room(NetworkConditions())
    ada, ben = room.add(ADA), room.add(BEN)
    room.forwarder.faults.replay = HeaderReplay.load(recording(tmp_path, out_of_order()))
    for number in range(1, 6):
        room.say(ada, b"%d" % number)
    assert [packet.payload for packet in room.heard(ben)] == [b"1", b"2", b"4", b"3", b"5"]


def test_a_loss_before_a_packet_that_was_overtaken_is_a_loss(tmp_path: Path) -> None:
    rows = [[0.0, 0, 1, 0, "e", 0, ""], [60.0, 0, 3, 2880, "e", 0, ""], [60.1, 0, -1, -960, "e", 0, ""]]
    (stream,) = HeaderReplay.load(recording(tmp_path, rows)).streams
    assert [(packet.lost_before, packet.behind) for packet in stream] == [(0, 0), (1, 1), (0, 0)]


def overtaken_twice() -> list[list[Any]]:
    """Return five packets of which the second came right behind the fourth."""
    steps = [(0, 1, 0), (40, 2, 1920), (60, 1, 960), (61, -2, -1920), (80, 1, 960)]
    return [[at, 0, step, ticks, "e", 0, ""] for at, step, ticks in steps]


def test_what_was_overtaken_twice_is_late(tmp_path: Path) -> None:
    (stream,) = HeaderReplay.load(recording(tmp_path, overtaken_twice())).streams
    assert [(round(packet.delay_s, 3), packet.lost_before) for packet in stream] == [(0, 0), (0.041, 0)] + [(0, 0)] * 3


def delayed(*at_ms: float) -> list[list[Any]]:
    """Return packets that were sent 20 ms apart, and came at these times in the order of sending."""
    return [[at, 0, 1, 960 if number else 0, "e", 0, ""] for number, at in enumerate(at_ms)]


async def heard_after_a_stall(folder: Path, rows: list[list[Any]]) -> list[bytes]:
    """Return what Ben gets of Ada's packets if the event loop stood still while she spoke, and has them all at once."""
    room = Room(NetworkConditions())
    ada, ben = room.add(ADA), room.add(BEN)
    room.forwarder.faults.replay = HeaderReplay.load(recording(folder, rows))
    for number in range(len(rows)):
        room.say(ada, b"%d" % number)
    async with asyncio.timeout(PATIENCE_S):
        while len(heard := room.heard(ben)) < len(rows):
            room.wire.told.clear()
            await room.wire.told.wait()
    return [packet.payload for packet in heard]


@pytest.mark.asyncio
async def test_a_loop_that_stood_still_swaps_no_delayed_packets(tmp_path: Path) -> None:
    """They came in order, the first of them 50 ms late, the next ones less and less."""
    rows = delayed(0, 70, 75, 78, 81)
    (stream,) = HeaderReplay.load(recording(tmp_path, rows)).streams
    assert [round(1000 * packet.delay_s) for packet in stream] == [0, 50, 35, 18, 1]
    assert await heard_after_a_stall(tmp_path, rows) == [b"0", b"1", b"2", b"3", b"4"]


@pytest.mark.asyncio
async def test_a_packet_that_was_overtaken_twice_is_so_again_after_a_stall(tmp_path: Path) -> None:
    """Nobody else overtakes it, and it holds up nobody who had overtaken it."""
    assert await heard_after_a_stall(tmp_path, overtaken_twice()) == [b"0", b"2", b"3", b"1", b"4"]


@pytest.mark.asyncio
async def test_delayed_packets_go_to_nobody_who_has_left(tmp_path: Path) -> None:
    room = Room(NetworkConditions())
    ada, ben, chloe = room.add(ADA), room.add(BEN), room.add(CHLOE)
    room.forwarder.faults.replay = HeaderReplay.load(recording(tmp_path, delayed(0, 70)))
    for payload in (b"0", b"1"):
        room.say(ada, payload)
    room.forwarder.remove(ben)
    async with asyncio.timeout(PATIENCE_S):
        while len(room.heard(chloe)) < 2:
            room.wire.told.clear()
            await room.wire.told.wait()
    assert [packet.payload for packet in room.heard(ben)] == [b"0"]


def test_a_client_that_begins_its_numbers_anew_loses_nothing(tmp_path: Path) -> None:
    """The recorder's steps are far behind its highest number then, one after the other."""
    steps = [(0, 1, 0), (20, 1, 960), (40, -4000, -9600), (60, -3999, -8640)]
    rows = [[at, 0, step, ticks, kind, 0, ""] for (at, step, ticks), kind in zip(steps, "eeec", strict=True)]
    (stream,) = HeaderReplay.load(recording(tmp_path, rows)).streams
    assert [(packet.kind, packet.lost_before) for packet in stream] == [("e", 0)] * 3 + [("c", 0)]


def test_rtcp_comes_as_often_as_recorded(tmp_path: Path) -> None:
    """Everybody who hears gets it, in relation to the packets that they get."""
    room = Room(NetworkConditions())
    ada, ben, chloe = room.add(ADA), room.add(BEN), room.add(CHLOE)
    path = recording(tmp_path, stream_of("e" * 10), other_packets={"rtcp 200": 2, "rtcp 201": 1, "foreign, 8 bytes": 9})
    room.forwarder.faults.replay = HeaderReplay.load(path)
    for _ in range(100):
        room.say(ada)
    for listener in (ben, chloe):
        kinds = [data[1] for data, to in room.wire.sent if to == listener.address][1:]
        assert (kinds.count(200), kinds.count(201), kinds.count(0x78)) == (20, 10, 100)
    assert room.forwarder.counters.injected == 60


def test_op_5_is_as_late_as_recorded(tmp_path: Path) -> None:
    """Each announcement takes the next recorded delay. One that came before its packet is not delayed."""
    streams = [{"speaking_after_first_packet_ms": [30.0, -40.0]}, {"speaking_after_first_packet_ms": [99_000.0]}, {}]
    replay = HeaderReplay.load(recording(tmp_path, PACKETS, streams=streams))
    assert [replay.speaking_delay_s() for _ in range(4)] == [0.03, 0.0, 10.0, 0.03]
    assert HeaderReplay.load(recording(tmp_path, PACKETS)).speaking_delay_s() == 0.0


@pytest.mark.parametrize(
    "more",
    [
        {"other_packets": {"rtcp 200": -1}},
        {"other_packets": {"rtcp 200": 10**9}},
        {"other_packets": {"rtcp 300": 1}},
        {"other_packets": 5},
        {"streams": [{"speaking_after_first_packet_ms": ["x"]}]},
        {"streams": [{"speaking_after_first_packet_ms": [float("nan")]}]},
        {"streams": 7},
    ],
)
def test_figures_that_cannot_be_are_refused(tmp_path: Path, more: dict[str, Any]) -> None:
    with pytest.raises(LocalDiscordError, match="this is not a recording of `roomtone doctor --live`"):
        HeaderReplay.load(recording(tmp_path, PACKETS, **more))


def test_delays_are_those_of_the_recording(tmp_path: Path) -> None:
    """A packet that came 30 ms after its time is delayed by so much; a pause of the speaker is no delay."""
    packets = [[at, 0, 1, ticks, "e", 0, ""] for at, ticks in ((0, 0), (50, 960), (52, 960), (3000, 960))]
    (stream,) = HeaderReplay.load(recording(tmp_path, packets)).streams
    assert [round(packet.delay_s, 3) for packet in stream] == [0.0, 0.03, 0.012, 0.0]


def test_a_pause_that_the_time_stamps_do_not_show_is_no_delay(tmp_path: Path) -> None:
    """Whether a client's time stamps fall behind or run ahead in a pause, the next talkspurt is in time."""
    for ticks in (960, 30_000):
        packets: list[list[Any]] = [
            [0, 0, 1, 0, "e", 0, ""],
            [20, 0, 1, 960, "s", 0, ""],
            [420, 0, 1, ticks, "e", 0, ""],
        ]
        (stream,) = HeaderReplay.load(recording(tmp_path, packets)).streams
        assert [packet.delay_s for packet in stream] == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    "packets",
    [
        [],
        [[0, 0, 1, 0, "p", 10, ""]],
        [[0, 0, 1, 0, "s", 0, ""]],
        [[0, 0, 1, 0, "x", 0, ""]],
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
