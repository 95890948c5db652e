"""Which SSRC belongs to which person, and packets that wait for that mapping."""

from __future__ import annotations

from voice.transport.roster import HELD_FRAMES, HeldFrame, Roster


def frame(n: int, at: float = 0.0) -> HeldFrame:
    return HeldFrame(n, n * 960, b"sealed %d" % n, at)


def everybody(_: int) -> bool:
    return False


def test_leaving_silences_every_ssrc() -> None:
    roster = Roster()
    roster.speaks(77, 3)
    roster.speaks(78, 3)
    assert sorted(roster.left(3)) == [77, 78]
    assert roster.user_of(77) is None
    assert roster.members == frozenset()


def test_only_the_latest_half_second_waits() -> None:
    roster = Roster()
    for n in range(HELD_FRAMES + 7):
        roster.hold(77, frame(n))
    assert roster.dropped == 7
    assert roster.speaks(77, 3)[0].sequence == 7


def test_a_new_connection_forgets_everything() -> None:
    roster = Roster()
    roster.speaks(77, 3)
    roster.hold(78, frame(0))
    roster.clear()
    assert roster.user_of(77) is None
    assert roster.dropped == 1
    assert roster.speaks(78, 3) == ()


def test_keys_are_tried_on_every_early_frame_then_once_a_second() -> None:
    """Keys are tried on each of an SSRC's first frames, and then once a second, in case no key opens it (an excluded
    person).
    """
    roster = Roster()
    tries = sum(roster.may_try(77, n * 0.02) for n in range(50 * 10))
    assert HELD_FRAMES + 8 <= tries <= HELD_FRAMES + 11


def test_excluded_members_are_no_candidates_and_the_unplaced_come_first() -> None:
    roster = Roster()
    roster.joined({1, 2, 3, 4})
    roster.speaks(77, 1)
    roster.speaks(78, 2)
    assert set(roster.candidates(everybody)[:2]) == {3, 4}
    assert set(roster.candidates({2, 3}.__contains__)) == {1, 4}


def test_invented_ssrcs_do_not_fill_the_memory() -> None:
    roster = Roster()
    for ssrc in range(5000):
        roster.hold(ssrc, frame(0))
    assert roster.dropped == 5000 - 200
    assert not roster.may_try(4999, 0.0)
    roster.expire(100.0)
    assert roster.dropped == 5000
    assert roster.may_try(4999, 100.0)
