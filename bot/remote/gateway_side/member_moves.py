"""Tells the process that runs a room who comes into its channel and who leaves, as soon as it accepts that."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.remote.gateway_side.adopted_room import moves_between
from bot.remote.messages.room_messages import MemberMoved
from bot.room.membership_queue import MembershipQueue

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bot.channel.port import MembershipChange, Person
    from bot.remote.link.message_link import MessageLink


class MemberMoves:
    """The comings and goings of one room, for one start."""

    def __init__(self) -> None:
        # Before the process takes them.
        self._early = MembershipQueue()
        self._link: MessageLink | None = None

    def add(self, change: MembershipChange) -> None:
        """Somebody has come or gone. Does not wait."""
        if self._link is None:
            self._early.add(change)
        else:
            self._link.tell(MemberMoved(change))

    def begin(self, link: MessageLink) -> None:
        """Tell who has moved so far. Who moves from now on is told at once."""
        self._link = link
        while self._early:
            self.add(self._early.get_nowait())

    def begin_again(self, link: MessageLink, before: Sequence[Person], now: Sequence[Person]) -> None:
        """Tell a room that ran on who has moved since its link was lost, once. `before`: who was there then.

        Who moves from now on is told at once.
        """
        if self._link is not None:
            return
        self._early = MembershipQueue()
        self._link = link
        for change in moves_between(before, now):
            self.add(change)

    def end(self) -> None:
        """Tell nothing any more."""
        self._link = None
