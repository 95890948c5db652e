"""Who came and went while the room could take note of nobody: little waits, and it is right in the end."""

from __future__ import annotations

import asyncio
from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.channel.port import MembershipChange, Person
from bot.room.membership_queue import MOST_OF_ONE, MembershipQueue
from tests.fakes.place import ADA, BO

MOVES = st.lists(st.tuples(st.sampled_from([ADA, BO]), st.booleans()), max_size=60)


def taken(queue: MembershipQueue) -> list[MembershipChange]:
    """Take everything that waits."""
    return [queue.get_nowait() for _ in range(len(queue))]


@pytest.mark.parametrize(("moves", "waiting"), [([True, False] * 1_000, 10), ([False, True] * 1_000 + [False], 9)])
def test_somebody_who_comes_and_goes_all_the_time_waits_few_times(moves: list[bool], waiting: int) -> None:
    """A room that stands still for an hour keeps ten changes of them, and not a thousand."""
    queue = MembershipQueue()
    for joined in moves:
        queue.add(MembershipChange(ADA, joined))
    assert taken(queue) == [MembershipChange(ADA, joined) for joined in moves[:waiting]]
    with pytest.raises(asyncio.QueueEmpty):
        queue.get_nowait()


@given(MOVES)
def test_everybody_is_where_they_went_last(moves: list[tuple[Person, bool]]) -> None:
    """Each person's changes alternate, begin with their first one, and end with their last one; ten wait at most."""
    queue = MembershipQueue()
    for person, joined in moves:
        queue.add(MembershipChange(person, joined))
    waiting = taken(queue)
    for person in (ADA, BO):
        went = [joined for each, joined in moves if each is person]
        told = [change.joined for change in waiting if change.person is person]
        assert len(told) <= MOST_OF_ONE
        assert told[:1] + told[-1:] == went[:1] + went[-1:]
        assert len(told) == len(list(groupby(told)))


@pytest.mark.asyncio
async def test_a_change_is_waited_for() -> None:
    """In the order in which people came."""
    queue = MembershipQueue()
    first = asyncio.ensure_future(queue.get())
    await asyncio.sleep(0)
    queue.add(MembershipChange(BO, joined=True))
    queue.add(MembershipChange(ADA, joined=True))
    assert (await first).person is BO
    assert (await queue.get()).person is ADA
    assert len(queue) == 0
