"""What becomes of a guild's room, whatever happens to it and in whichever order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.posts.notice import NotAnnouncedError
from bot.room.leaving import EMPTY, EXPELLED, LEFT, MOVED, NOT_JOINED, PROCESS_ENDS
from bot.room.lifecycle import (
    GOES_ON,
    LONGEST_PAUSE_S,
    MOST_CRASHES,
    STABLE_S,
    Crash,
    Ending,
    LastSession,
    Moving,
    Over,
    Pausing,
    RoomLifecycle,
    RoomRestarts,
    Running,
    State,
)
from bot.store.claims import STALE
from compaction.errors import StaleOwnerError, StoreError
from tests.fakes.room_channel import FakeRoomChannel
from voice.errors import VoiceConnectionError

LOUNGE, SIDE, ATTIC = (FakeRoomChannel(channel_id=number) for number in (20, 21, 22))
AWAY = StoreError("The database is away.")
HUNG_UP = VoiceConnectionError("Discord hung up.")
TAKEN_OVER = StaleOwnerError(STALE)


@dataclass(frozen=True)
class AskedToEnd:
    """Somebody wants no room any more."""

    reason: str


@dataclass(frozen=True)
class Moved:
    """Somebody has moved the bot."""

    to: FakeRoomChannel


@dataclass(frozen=True)
class Ended:
    """The room has ended in order."""

    reason: str
    has_opened: bool
    left_open: bool = False


@dataclass(frozen=True)
class PauseOver:
    """The pause after a crash is over."""


@dataclass(frozen=True)
class CutOff:
    """The task of the room was cancelled."""

    has_opened: bool = False


Event = AskedToEnd | Moved | Ended | Crash | PauseOver | CutOff

ERRORS = [AWAY] * 4 + [HUNG_UP] * 2 + [TAKEN_OVER, NotAnnouncedError("Nobody was told.")]
CRASHES = st.builds(
    Crash,
    st.sampled_from(ERRORS),
    ran_s=st.sampled_from([0.0, 60.0, 3600.0]),
    has_opened=st.sampled_from([False, False, True]),
    is_awaited=st.sampled_from([False] * 5 + [True]),
)
MOVES = st.builds(Moved, st.sampled_from([LOUNGE, SIDE, ATTIC]))
ENDS = st.builds(Ended, st.sampled_from([EXPELLED, MOVED]), st.booleans())
ASKED = st.builds(AskedToEnd, st.sampled_from([LEFT, EXPELLED, EMPTY, PROCESS_ENDS, NOT_JOINED]))
PAUSE_OVER, CUT_OFF = st.just(PauseOver()), st.just(CutOff())
# What may happen in each state. What ends a room for good is rare, so that enough comes before it.
EVENTS: dict[type, Sequence[st.SearchStrategy[Event]]] = {
    Running: [MOVES] * 4 + [CRASHES] * 8 + [ENDS, ASKED, CUT_OFF],
    Moving: [MOVES, CRASHES, CRASHES, CRASHES, ENDS, ENDS, ENDS, ASKED, CUT_OFF],
    Pausing: [PAUSE_OVER] * 8 + [MOVES, ASKED, CUT_OFF],
    Ending: [MOVES, ASKED, ASKED, CRASHES, ENDS, PAUSE_OVER, CUT_OFF],
    Over: [MOVES, ASKED, CUT_OFF],
}

# The table of `bot.room.lifecycle`: what may follow. What is missing cannot happen.
FOLLOWS: dict[tuple[type, type], set[type]] = {
    (Running, AskedToEnd): {Ending},
    (Running, Moved): {Running, Moving},
    (Running, Ended): {Over},
    (Running, Crash): {Pausing, Over},
    (Running, CutOff): {Over},
    (Moving, AskedToEnd): {Ending},
    (Moving, Moved): {Moving},
    (Moving, Ended): {Running, Over},
    (Moving, Crash): {Running, Over},
    (Moving, CutOff): {Over},
    (Pausing, AskedToEnd): {Ending},
    (Pausing, Moved): {Pausing},
    (Pausing, PauseOver): {Running},
    (Pausing, CutOff): {Over},
    (Ending, AskedToEnd): {Ending},
    (Ending, Moved): {Ending},
    (Ending, Ended): {Over},
    (Ending, Crash): {Over},
    (Ending, PauseOver): {Over},
    (Ending, CutOff): {Over},
    (Over, AskedToEnd): {Over},
    (Over, Moved): {Over},
    (Over, CutOff): {Over},
}


def _handle(lifecycle: RoomLifecycle, event: Event) -> str | None:
    match event:
        case AskedToEnd(reason):
            lifecycle.ask_to_end(reason)
        case Moved(to):
            lifecycle.move_to(to)
        case Ended(reason, has_opened):
            lifecycle.room_ended(reason, has_opened=has_opened, left_open=event.left_open)
        case Crash():
            return lifecycle.room_crashed(event)
        case PauseOver():
            lifecycle.pause_over()
        case CutOff(has_opened):
            lifecycle.cut_off(has_opened=has_opened)
    return None


class Step(NamedTuple):
    """One event in the life of a room. `notice`: what was written about it."""

    before: State
    event: Event
    after: State
    notice: str | None


def _steps(lifecycle: RoomLifecycle, events: Iterable[Event]) -> Iterator[Step]:
    for event in events:
        before = lifecycle.state
        notice = _handle(lifecycle, event)
        yield Step(before, event, lifecycle.state, notice)


@st.composite
def lives(draw: st.DrawFn) -> list[Step]:
    """Return what happens to a room that begins in the lounge."""
    lifecycle = RoomLifecycle(LOUNGE)
    count = draw(st.integers(1, 30))
    kinds = (draw(st.sampled_from(EVENTS[type(lifecycle.state)])) for _ in range(count))
    return list(_steps(lifecycle, map(draw, kinds)))


@given(lives())
def test_only_what_the_table_says_follows(life: list[Step]) -> None:
    """And nothing brings a room back that was asked to end, or is over."""
    for before, event, after, _ in life:
        assert type(after) in FOLLOWS[type(before), type(event)], (before, event)


@given(lives())
def test_the_room_is_where_it_was_last_moved(life: list[Step]) -> None:
    """It changes its channel only when it has ended for that."""
    for before, _, after, _ in life:
        came = isinstance(before, Moving) and isinstance(after, Running)
        assert after.channel is (before.to if came else before.channel)  # type: ignore[union-attr]


@given(lives())
def test_who_sends_the_bot_away_is_not_forgotten(life: list[Step]) -> None:
    """The session ends, whoever else asks the room to end, before or after, and however that goes."""
    is_sent_away = False
    for _, event, after, _ in life:
        is_sent_away |= isinstance(event, AskedToEnd) and event.reason not in GOES_ON
        assert not isinstance(after, Ending) or after.ends_session == is_sent_away
        assert not isinstance(after, Over) or not is_sent_away or after.ends_session


@given(lives())
def test_a_session_goes_on_only_with_somebody(life: list[Step]) -> None:
    """Once no room follows, it is left open for the next process, for whoever has called the bot and may try again, or
    because nobody knows what has happened.
    """
    for before, event, after, _ in life:
        if isinstance(after, Over) and not isinstance(before, Over) and not after.ends_session:
            is_known = not isinstance(event, CutOff) and after.session is not LastSession.TAKEN_OVER
            is_awaited = isinstance(event, Crash) and event.is_awaited
            assert isinstance(before, Ending) or is_awaited or not is_known, (before, event)


@given(lives())
def test_a_crash_is_told_once(life: list[Step]) -> None:
    """Unless the room goes on elsewhere, nobody wants it back, who has called it gets the error, or it was told that
    the database is away.
    """
    for before, event, after, notice in life:
        if isinstance(event, Crash) and isinstance(before, Running):
            is_told_before = before.waits and isinstance(after, Pausing) and after.following.waits
            is_told_else = event.is_awaited and isinstance(after, Over) and after.session is not LastSession.TAKEN_OVER
            assert (notice is None) == (is_told_before or is_told_else)
        elif not isinstance(event, Crash) or event.error is not TAKEN_OVER:
            assert notice is None


@given(lives())
def test_who_takes_the_bot_out_does_not_meet_it_elsewhere(life: list[Step]) -> None:
    """Also if it was to follow somebody."""
    for _, event, after, _ in life:
        assert not (isinstance(event, Ended) and event.reason == EXPELLED) or isinstance(after, Over)


def _crash(error: Exception, *, has_opened: bool = False) -> Crash:
    return Crash(error, 0.0, has_opened=has_opened, is_awaited=False)


CRASHED: list[Event] = [_crash(HUNG_UP, has_opened=True), PauseOver()]


@pytest.mark.parametrize(
    ("events", "session"),
    [
        pytest.param([Ended(EMPTY, has_opened=True)], LastSession.ENDED, id="in order"),
        pytest.param([Ended(EMPTY, has_opened=True, left_open=True)], LastSession.OPEN, id="database away"),
        pytest.param(
            [*CRASHED, Ended(LEFT, has_opened=False)],
            LastSession.OPEN,
            id="crashed",
        ),
        pytest.param([*CRASHED, CutOff()], LastSession.OPEN, id="crashed, and cut off"),
        pytest.param([AskedToEnd(LEFT), _crash(HUNG_UP)], LastSession.OPEN, id="crashed while it ended"),
        pytest.param([_crash(HUNG_UP), AskedToEnd(LEFT), CutOff()], LastSession.OPEN, id="sent away in a pause"),
        pytest.param([AskedToEnd(LEFT), _crash(TAKEN_OVER)], LastSession.TAKEN_OVER, id="taken over"),
    ],
)
def test_what_is_left_of_the_session(events: list[Event], session: LastSession) -> None:
    """A session that is open would bring the bot back."""
    lifecycle = RoomLifecycle(LOUNGE)
    *_, last = _steps(lifecycle, events)
    assert isinstance(last.after, Over)
    assert last.after.session is session


GIVEN_UP = [_crash(HUNG_UP), PauseOver()] * MOST_CRASHES + [_crash(HUNG_UP)]
MOVED_AND_OPEN: list[Event] = [Moved(SIDE), Ended(MOVED, has_opened=True)]
MOVED_UNSTORED: list[Event] = [Moved(SIDE), Ended(MOVED, has_opened=True, left_open=True)]


@pytest.mark.parametrize(
    ("events", "is_unwanted"),
    [
        pytest.param([Ended(EMPTY, has_opened=True)], False, id="ended in order"),
        pytest.param([Ended(LEFT, has_opened=True, left_open=True)], True, id="sent away, database away"),
        pytest.param([Ended(PROCESS_ENDS, has_opened=True, left_open=True)], False, id="process ends, database away"),
        pytest.param([AskedToEnd(LEFT), _crash(HUNG_UP)], True, id="sent away, and crashed"),
        pytest.param([AskedToEnd(EMPTY), _crash(HUNG_UP)], True, id="crashed while it ended by itself"),
        pytest.param([AskedToEnd(PROCESS_ENDS), _crash(HUNG_UP)], False, id="the process ends"),
        pytest.param([AskedToEnd(PROCESS_ENDS), AskedToEnd(LEFT), CutOff()], True, id="sent away while it ends"),
        pytest.param([AskedToEnd(PROCESS_ENDS), _crash(HUNG_UP), AskedToEnd(LEFT)], True, id="sent away afterwards"),
        pytest.param([*CRASHED, Ended(EXPELLED, has_opened=False)], True, id="taken out"),
        pytest.param([_crash(HUNG_UP), AskedToEnd(EXPELLED), CutOff()], True, id="taken out in a pause"),
        pytest.param(GIVEN_UP, True, id="given up"),
        pytest.param([*MOVED_AND_OPEN, _crash(HUNG_UP)], True, id="could not come along"),
        pytest.param([*MOVED_UNSTORED, _crash(AWAY), CutOff()], True, id="moved, database away, and the process ends"),
        pytest.param([*MOVED_UNSTORED, CutOff(has_opened=True)], False, id="moved, database away, and open there"),
        pytest.param([_crash(NotAnnouncedError("Nobody was told."))], True, id="could tell nobody"),
        pytest.param([_crash(HUNG_UP), CutOff()], False, id="cut off"),
        pytest.param([_crash(TAKEN_OVER), AskedToEnd(LEFT)], False, id="taken over"),
    ],
)
def test_whose_session_nobody_shall_resume(events: list[Event], *, is_unwanted: bool) -> None:
    """It would bring the bot back at its next start."""
    lifecycle = RoomLifecycle(LOUNGE)
    *_, last = _steps(lifecycle, events)
    assert isinstance(last.after, Over)
    assert lifecycle.is_session_unwanted is is_unwanted


@pytest.mark.parametrize(
    ("events", "is_overlooked"),
    [
        pytest.param([], False, id="open"),
        pytest.param([Moved(SIDE)], True, id="moved"),
        pytest.param([_crash(HUNG_UP)], True, id="in a pause"),
        pytest.param([AskedToEnd(LEFT)], False, id="ending"),
        pytest.param([CutOff()], False, id="over"),
    ],
)
def test_who_takes_the_bot_out_is_seen(events: list[Event], *, is_overlooked: bool) -> None:
    """By the room that runs, if it has a connection; one that has none never does."""
    lifecycle = RoomLifecycle(LOUNGE)
    for event in events:
        _handle(lifecycle, event)
    assert lifecycle.overlooks_removal(room_sees_it=True) is is_overlooked
    assert lifecycle.overlooks_removal(room_sees_it=False) is (is_overlooked or isinstance(lifecycle.state, Running))


@pytest.mark.parametrize(
    ("ran_s", "pauses"),
    [
        pytest.param([0.0] * 5, [1.0, 2.0, 4.0, 8.0, 16.0], id="the pauses after crashes grow"),
        pytest.param([0.0, STABLE_S], [1.0, 1.0], id="a stable room's crash is the first again"),
    ],
)
def test_how_long_a_room_waits(ran_s: list[float], pauses: list[float]) -> None:
    """`ran_s`: after how many seconds the room crashed each time."""
    restarts = RoomRestarts()
    assert [restarts.pause_after(ran_s=each) for each in ran_s] == pauses


def test_a_room_that_crashes_again_and_again_stays_closed() -> None:
    """However long it ran, unless it was stable. No pause is longer than the longest."""
    restarts = RoomRestarts()
    pauses = [restarts.pause_after(ran_s=STABLE_S - 1) for _ in range(MOST_CRASHES + 1)]
    assert all(pause is not None and pause <= LONGEST_PAUSE_S for pause in pauses[:-1])
    assert pauses[-1] is None
    assert restarts.crashes == MOST_CRASHES + 1
