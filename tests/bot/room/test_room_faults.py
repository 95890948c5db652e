"""Whether a room hears people, and people hear the bot."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from bot import events
from bot.events import ReplyOutcome
from bot.health import FaultKind
from bot.room.room_status import LINK_GRACE_S, RoomFaults
from tests.fakes.place import FakeLink, FakePlace
from voice.speaking.playback import Playback

if TYPE_CHECKING:
    from collections.abc import Sequence

NOW = 1_000.0
HEARD = events.UtteranceTranscribed("u", 1, "Hello.", 1.0, 2.0, 3.0)
UNRECOGNISED = events.SpeechDropped("u", 1, "recogniser_failed", "", 1.0, 2.0, 3.0)
TOO_SHORT = events.SpeechDropped("u", 1, "too_short", "", 1.0, 2.0, 3.0)


def reply(outcome: ReplyOutcome) -> events.ReplyFinished:
    """Return a finished reply."""
    return events.ReplyFinished(3, outcome, 1.0, 2.0, 3.0, 0.1, 4.0, 5.0)


async def kinds(
    happened: Sequence[events.Event],
    *,
    down_s: float | None = None,
    unheard: bool = False,
    audible: bool = True,
    deafened: bool = False,
    speaks: bool = True,
) -> list[FaultKind]:
    """Return the kinds of the faults of a room in which that happened."""
    room, link, place = RoomFaults(), FakeLink(Playback(), lambda _: None), FakePlace()
    place.audible, place.deafened = audible, deafened
    link.down_since = None if down_s is None else NOW - down_s
    link.unheard = unheard
    for event in happened:
        room.on_event(event)
    found = room.faults(link, place, speaks=speaks, now=NOW)
    for fault in found:
        assert re.fullmatch(r"[A-Z].*[.]", fault.sentence)
    return [fault.kind for fault in found]


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
    assert await kinds(happened) == expected


async def test_the_connection_makes_a_room_deaf_or_mute() -> None:
    """A connection that is down for longer than a new one takes is deafness, and so is sound that does not arrive. A
    deafened bot is deaf, whatever else, and a muted one is mute, unless it only writes down what is said.
    """
    assert await kinds([], down_s=LINK_GRACE_S - 1) == []
    assert await kinds([], down_s=LINK_GRACE_S, audible=False) == [FaultKind.ROOM_DEAF]
    assert await kinds([], unheard=True) == [FaultKind.ROOM_DEAF]
    assert await kinds([], deafened=True, unheard=True) == [FaultKind.ROOM_DEAF]
    assert await kinds([], audible=False) == [FaultKind.ROOM_MUTE]
    assert await kinds([reply(ReplyOutcome.UNSPOKEN)], audible=False, speaks=False) == []
