"""When somebody was away, read from the turns that the bot records of comings and goings."""

from __future__ import annotations

import pytest

from bot.channel.port import MembershipChange, Person
from bot.memory.digests import Absence, last_absence
from bot.room.conversation.membership import MembershipGatherer
from bot.screen.messages import format_recap, format_share_start
from compaction.model import Seq, Turn, TurnKind, TurnPart

ADA = Person(2001, "Ada who left", is_bot=False)


def said(at: float, person: str = "1", kind: TurnKind = TurnKind.SPEECH, text: str = "I left it there.") -> Turn:
    return Turn(Seq(int(at)), kind, at, at + 2.0, (TurnPart(person, ADA.name, text),))


def moves(*changes: tuple[float, bool]) -> list[Turn]:
    """Return the turns that a room records of Ada's comings and goings, between those of somebody else."""
    gatherer = MembershipGatherer()
    turns = [said(0.0)]

    def record(at: float, *, room_ends: bool = False) -> None:
        news = gatherer.due(at, room_ends=room_ends)
        turns.extend(said(at, str(ADA.id), TurnKind.MEMBERSHIP, f"{ADA.name} {each.what}") for each in news)

    for at, joined in changes:
        record(at)
        gatherer.handle(MembershipChange(ADA, joined))
        record(at)
    last = (changes[-1][0] if changes else 0.0) + 100
    record(last, room_ends=True)
    return [*turns, said(last + 100)]


@pytest.mark.parametrize(
    ("changes", "away"),
    [
        ((), Absence(0.0, None)),
        (((100.0, True),), Absence(0.0, 100.0)),
        (((100.0, False),), Absence(100.0, None)),
        (((100.0, False), (900.0, True)), Absence(100.0, 900.0)),
        (((100.0, False), (900.0, True), (2_000.0, False)), Absence(2_000.0, None)),
        (((100.0, False), (900.0, True), (2_000.0, False), (2_400.0, True)), Absence(2_000.0, 2_400.0)),
        # Unsteady connections: within a minute only the first change has its own turn.
        (((100.0, False), (110.0, True), (120.0, False), (900.0, True)), Absence(900.0, 1_000.0)),
        (((100.0, True), (110.0, False), (120.0, True)), Absence(0.0, 100.0)),
    ],
)
def test_the_last_absence_is_read_from_the_turns(changes: tuple[tuple[float, bool], ...], away: Absence) -> None:
    """Who came late was away before; who has left is away; otherwise it is the time from leaving to coming back."""
    assert last_absence(moves(*changes), str(ADA.id)) == away


def test_who_was_there_from_the_beginning_was_never_away() -> None:
    """They spoke without having come. Leaving later counts."""
    there = [said(0.0), said(5.0, str(ADA.id)), said(9.0)]
    assert last_absence(there, str(ADA.id)) is None
    gone = [*there, said(20.0, str(ADA.id), TurnKind.MEMBERSHIP, f"{ADA.name} left the channel.")]
    assert last_absence(gone, str(ADA.id)) == Absence(20.0, None)
    # Their coming back was not recorded, for example because the bot was restarted meanwhile.
    assert last_absence([*gone, said(90.0, str(ADA.id))], str(ADA.id)) == Absence(20.0, 90.0)
    assert last_absence([], str(ADA.id)) is None


def test_words_that_are_recorded_after_their_person_left_are_no_return() -> None:
    """The last sentence is recognised while the leaving is already recorded. Catching up tells what came then."""
    turns = [said(0.0, str(ADA.id)), *moves((20.0, False)), said(15.0, str(ADA.id)), said(40.0)]
    assert last_absence(turns, str(ADA.id)) == Absence(20.0, None, left=True)
    assert last_absence([*turns, *moves((60.0, True))], str(ADA.id)) == Absence(20.0, 60.0, left=True)


def test_what_was_on_a_shared_screen_is_no_coming_or_going() -> None:
    """The turn at the end of a share quotes the screen: 'left' and 'joined' on it move nobody."""
    seen = ("new text: “3 lives left”", "now: “Ben joined the party · Eve left”")
    recap = format_recap(ADA.name, "a window", lasted_s=600.0, seen=seen)
    begun = format_share_start(ADA.name, "a window")
    shared = [
        said(50.0, str(ADA.id), TurnKind.MEMBERSHIP, begun),
        said(650.0, str(ADA.id), TurnKind.MEMBERSHIP, recap),
    ]
    assert last_absence([said(0.0), *shared], str(ADA.id)) is None
    away = [turn for turn in moves((700.0, False), (900.0, True)) if turn.started_at in {700.0, 900.0}]
    again = [said(at, str(ADA.id), TurnKind.MEMBERSHIP, text) for at, text in ((950.0, begun), (1_000.0, recap))]
    assert last_absence([said(0.0), *shared, *away, *again], str(ADA.id)) == Absence(700.0, 900.0)
