"""What is wrong in a room, and what its channel is told of it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from bot import events
from bot.events import ReplyOutcome
from bot.health import REPORT_AGAIN_AFTER_S, Actor, FaultKind, HealthFault, ToldFaults
from bot.room.room_faults import CONNECTION_GRACE_S, UNDERSTANDS_NOBODY, RoomFaults
from bot.texts.text import Text, verbatim
from compaction.errors import StoreError
from tests.fakes.clock import FakeClock
from tests.fakes.room_channel import FakeRoomChannel, FakeVoiceConnection
from voice.speaking.playback import Playback

BEGUN, OVER = UNDERSTANDS_NOBODY.sentence, UNDERSTANDS_NOBODY.over
SOON, LATER = 5.0, REPORT_AGAIN_AFTER_S


@pytest.mark.parametrize(
    ("happened", "told"),
    [
        ([(0.0, False)], [[]]),
        ([(0.0, True), (SOON, True)], [[BEGUN], []]),
        ([(0.0, True), (SOON, False), (6.0, False)], [[BEGUN], [OVER], []]),
        ([(0.0, True), (SOON, False), (10.0, True), (15.0, False)], [[BEGUN], [OVER], [], []]),
        (
            [(0.0, True), (SOON, False), (10.0, True), (LATER, True), (LATER + 1, False)],
            [[BEGUN], [OVER], [], [BEGUN], [OVER]],
        ),
    ],
)
def test_each_change_is_told_once(happened: list[tuple[float, bool]], told: list[list[str]]) -> None:
    """A change is told at once, the same state never again, and trouble that returns soon only when it lasts."""
    notice = ToldFaults()
    assert [notice.news([UNDERSTANDS_NOBODY] * is_there, now) for now, is_there in happened] == told


def test_only_what_concerns_the_channel_is_told_there() -> None:
    """A fault says so by what the channel reads once it is over. One that never is over is told all the same."""
    notice, gpu = ToldFaults(), HealthFault(FaultKind.MODELS, Text("The GPU fails."), over=verbatim(""))
    silent = HealthFault(FaultKind.DISK, Text("The disk is nearly full."))
    assert notice.news([gpu, silent], 0.0) == [gpu.sentence]
    assert notice.news([], 1.0) == []


HEARD = events.UtteranceTranscribed("u", 1, "Hello.", 1.0, 2.0, 3.0)
UNRECOGNISED = events.SpeechDropped("u", 1, "recogniser_failed", "", 1.0, 2.0, 3.0)
TOO_SHORT = events.SpeechDropped("u", 1, "too_short", "", 1.0, 2.0, 3.0)


def reply(outcome: ReplyOutcome) -> events.ReplyFinished:
    """Return a finished reply."""
    return events.ReplyFinished(3, outcome, 1.0, 2.0, 3.0, 0.1, 4.0, 5.0)


async def found(
    happened: Sequence[events.Event] = (),
    *,
    down_s: float | None = None,
    unheard: bool = False,
    audible: bool = True,
    muted: bool = False,
    deafened: bool = False,
    speaks: bool = True,
    unstored: StoreError | None = None,
) -> list[HealthFault]:
    """Return what is wrong in a room in which that happened."""
    clock, connection, channel = FakeClock(), FakeVoiceConnection(Playback(), lambda _: None), FakeRoomChannel()
    room = RoomFaults(clock)
    room.unstored = unstored
    channel.audible, channel.muted, channel.deafened = audible, muted, deafened
    connection.down_since = None if down_s is None else clock.monotonic() - down_s
    connection.unheard = unheard
    for event in happened:
        room.on_event(event)
    return room.faults(connection, channel, speaks=speaks)


@pytest.mark.parametrize(
    ("happened", "expected"),
    [
        ([], []),
        ([HEARD, TOO_SHORT, TOO_SHORT, TOO_SHORT], []),
        ([UNRECOGNISED], []),
        ([UNRECOGNISED, UNRECOGNISED], [FaultKind.ROOM_DEAF]),
        ([UNRECOGNISED, TOO_SHORT, UNRECOGNISED], [FaultKind.ROOM_DEAF]),
        ([UNRECOGNISED, UNRECOGNISED, HEARD], []),
        ([reply(ReplyOutcome.UNSPOKEN)], [FaultKind.ROOM_MUTE]),
        ([reply(ReplyOutcome.UNSPOKEN), reply(ReplyOutcome.SKIPPED)], [FaultKind.ROOM_MUTE]),
        ([reply(ReplyOutcome.UNSPOKEN), reply(ReplyOutcome.SPOKEN)], []),
        ([reply(ReplyOutcome.UNSPOKEN), reply(ReplyOutcome.INTERRUPTED)], []),
        ([reply(ReplyOutcome.FAILED)], []),
    ],
)
async def test_what_happened_makes_a_room_deaf_or_mute(
    happened: Sequence[events.Event], expected: list[FaultKind]
) -> None:
    """Two failures of the recogniser in a row make it deaf, and an answer that could not be spoken makes it mute, until
    one succeeds.
    """
    assert [fault.kind for fault in await found(happened)] == expected


DEAF, MUTE = FaultKind.ROOM_DEAF, FaultKind.ROOM_MUTE


async def test_the_connection_makes_a_room_deaf_or_mute() -> None:
    """A connection that is down for longer than a new one takes is deafness, and so is sound that does not arrive. A
    deafened bot is deaf, whatever else, and a muted one is mute, unless it only writes down what is said. Each says who
    must act.
    """
    for wrong, expected in (
        (found(down_s=CONNECTION_GRACE_S - 1), []),
        (found(down_s=CONNECTION_GRACE_S), [(DEAF, Actor.NOBODY)]),
        (found(unheard=True), [(DEAF, Actor.OPERATOR)]),
        (found(deafened=True, unheard=True), [(DEAF, Actor.MEMBERS)]),
        (found(audible=False), [(MUTE, Actor.MEMBERS)]),
        (found(audible=False, muted=True, down_s=CONNECTION_GRACE_S), [(DEAF, Actor.NOBODY), (MUTE, Actor.MEMBERS)]),
        (found([reply(ReplyOutcome.UNSPOKEN)], audible=False, speaks=False), []),
        (found(unstored=StoreError("The database is away.")), [(FaultKind.DATABASE, Actor.OPERATOR)]),
    ):
        faults = await wrong
        assert [(fault.kind, fault.acts) for fault in faults] == expected
        assert all(fault.since is not None for fault in faults)
