"""Who may read what was said: the one predicate, as tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from bot.viewers import NOTHING, WHOLE, AttendedSession, Stay, Viewer, Viewing, hears, viewing_of
from compaction.model import Fact, Segment, SegmentId, Seq, SessionId, Turn, TurnKind, TurnPart

ADA, GUILD, LOUNGE, OTHER = "1", 10, 20, 21
STAY = (Stay(100.0, 200.0),)


def session(*, guild_id: int | None = GUILD, goes_on: bool = False, stays: Sequence[Stay] = STAY) -> AttendedSession:
    """Return a session in the lounge that Ada attended."""
    return AttendedSession(SessionId("evening"), guild_id, LOUNGE, goes_on, {ADA: tuple(stays)})


def viewer(*, allowed: int = LOUNGE, opened: frozenset[int] = frozenset(), present_in: int | None = None) -> Viewer:
    """Return Ada."""
    return Viewer(ADA, GUILD, frozenset({allowed, OTHER}), opened, present_in)


def turn(seq: int, since: float, until: float, *speakers: str) -> Turn:
    """Return a turn in which these people speak."""
    parts = tuple(TurnPart(each, each, f"What {each} says.") for each in speakers or ("2",))
    return Turn(Seq(seq), TurnKind.SPEECH, since, until, parts)


@pytest.mark.parametrize(
    ("person", "of", "expected"),
    [
        (viewer(), session(), Viewing(ADA, stays=STAY)),
        (viewer(), session(stays=()), Viewing(ADA)),
        (viewer(), session(guild_id=GUILD + 1), NOTHING),
        (viewer(), session(guild_id=None), NOTHING),
        (viewer(allowed=OTHER), session(), NOTHING),
        (viewer(opened=frozenset({LOUNGE})), session(stays=()), WHOLE),
        (viewer(opened=frozenset({OTHER})), session(stays=()), Viewing(ADA)),
        (viewer(allowed=OTHER, opened=frozenset({OTHER})), session(), NOTHING),
    ],
)
def test_who_was_there_reads_it_and_to_whom_history_is_open(
    person: Viewer, of: AttendedSession, expected: Viewing
) -> None:
    """Both only on their server, and of channels that may be told where they read."""
    assert viewing_of(person, of) == expected


@pytest.mark.parametrize(
    ("present_in", "goes_on", "catches_up", "whole"),
    [
        (LOUNGE, True, True, True),
        (LOUNGE, True, False, False),
        (LOUNGE, False, True, False),
        (OTHER, True, True, False),
        (None, True, True, False),
    ],
)
def test_catching_up_is_for_who_is_there_while_it_goes_on(
    present_in: int | None, goes_on: bool, catches_up: bool, whole: bool
) -> None:
    """It is the only exception."""
    found = viewing_of(viewer(present_in=present_in), session(goes_on=goes_on), catches_up=catches_up)
    assert found.is_whole is whole


@pytest.mark.parametrize(
    ("since", "until", "read"),
    [(100.0, 110.0, True), (190.0, 200.0, True), (99.0, 110.0, False), (190.0, 201.0, False), (300.0, 301.0, False)],
)
def test_a_turn_is_read_by_who_heard_all_of_it(since: float, until: float, read: bool) -> None:
    """Of another one they read their own words."""
    viewing = Viewing(ADA, stays=STAY)
    assert viewing.turn(turn(0, since, until)).tombstone is not read
    own = viewing.turn(turn(0, since, until, ADA, "2"))
    assert [part.speaker_id for part in own.parts] == ([ADA, "2"] if read else [ADA])
    assert NOTHING.turn(turn(0, since, until, ADA)).tombstone


def test_who_has_not_left_reads_on() -> None:
    """A stay without an end covers whatever comes."""
    assert Viewing(ADA, stays=(Stay(100.0),)).covers(5000.0, 5001.0)


def test_of_a_segment_with_unheard_turns_only_the_heard_facts_are_read() -> None:
    """Its gist and its paragraph tell of all turns, and its heading is that of others. Facts keep their places, by
    which others name them.
    """
    turns = [turn(0, 50.0, 60.0), turn(1, 110.0, 120.0), turn(2, 130.0, 140.0)]
    facts = (Fact((Seq(0),), "Unheard."), Fact((Seq(0), Seq(1)), "Half heard."), Fact((Seq(1),), "Heard."))
    mixed = Segment(SegmentId("a"), SessionId("s"), Seq(0), Seq(2), 50.0, 120.0, "Gist.", facts, (), "v1", "All.")
    heard = Segment(SegmentId("b"), SessionId("s"), Seq(2), Seq(3), 130.0, 140.0, "Later.", facts[2:], (), "v1")
    gone = Segment(SegmentId("c"), SessionId("s"), Seq(3), Seq(4), 150.0, 160.0, "Deleted.", (), (), "v1")
    headed = [replace(each, heading="Unheard") for each in (mixed, heard)]
    assert [each.heading for each in Viewing(ADA, stays=STAY).segments(headed, turns)] == ["Heard", "Heard"]
    first, second, third = Viewing(ADA, stays=STAY).segments([mixed, heard, gone], turns)
    assert (first.gist, first.paragraph, [fact.text for fact in first.facts]) == ("", "", ["", "", "Heard."])
    assert second is heard
    assert third.gist == ""
    assert WHOLE.segments([mixed], turns) == [mixed]


def test_what_is_being_said_is_read_by_who_is_there() -> None:
    """And by those to whom the channel's history is open."""
    assert hears(viewer(present_in=LOUNGE), LOUNGE)
    assert hears(viewer(opened=frozenset({LOUNGE})), LOUNGE)
    assert not hears(viewer(present_in=OTHER), LOUNGE)
    assert not hears(viewer(allowed=OTHER, present_in=LOUNGE), LOUNGE)


def test_reading_everything_takes_all_channels() -> None:
    """One that is closed to them is enough to be left out."""
    assert viewer(opened=frozenset({LOUNGE, OTHER})).reads_everything
    assert not viewer(opened=frozenset({LOUNGE})).reads_everything
