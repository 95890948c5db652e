"""Maps SSRCs to users, and holds frames until their sender is known.

The table is built from the voice gateway's messages (op 2, 5, 11, 12, 13, 22). UDP packets may arrive before op 5, and
after a restart during speech op 5 never comes. Early frames wait here, still encrypted, and the receiver may try the
members' keys on them. This module decides whose keys to try, and how often; it does not decrypt.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

# Half a second. Op 5 comes within a frame or two, a member's key within one re-key.
HELD_FRAMES = 25
# Older sound would come too late for the conversation.
HELD_S = 1.5
# An SSRC that no key fits (an excluded member's, for example) is retried at this interval. 10 members cost 80 µs.
_RETRY_S = 1.0
_FORGET_S = 60.0
# More than a Discord room holds. The limit keeps forged SSRCs from filling the memory.
_MAX_UNKNOWN = 200
# A client has one at a time, and another one after each connection. A modified one could send every packet on its own.
MOST_SSRCS = 4


class HeldFrame(NamedTuple):
    """A frame that can wait until its sender is known: transport-decrypted, still DAVE-encrypted.

    `came_after`: it came after this, and before `arrived_at`.
    """

    sequence: int
    timestamp: int
    frame: bytes
    arrived_at: float
    came_after: float


@dataclass(slots=True)
class _Unknown:
    frames: deque[HeldFrame] = field(default_factory=deque)
    tries: int = 0
    tried_at: float = float("-inf")


class Roster:
    """The members of one voice connection. Not thread-safe.

    `dropped` counts held frames that were given up.
    """

    def __init__(self) -> None:
        self.dropped = 0
        self._members: set[int] = set()
        self._user_of: dict[int, int] = {}
        self._unknown: dict[int, _Unknown] = {}

    @property
    def members(self) -> frozenset[int]:
        """Everybody the voice gateway named, without the bot."""
        return frozenset(self._members)

    def user_of(self, ssrc: int) -> int | None:
        """Return who sends on `ssrc`; None: it is not known yet."""
        return self._user_of.get(ssrc)

    def ssrcs_of(self, user_id: int) -> tuple[int, ...]:
        """Return the SSRCs that a person is known to send on, in the order in which they were learnt."""
        return tuple(ssrc for ssrc, user in self._user_of.items() if user == user_id)

    def joined(self, user_ids: Iterable[int]) -> None:
        """Handle op 11: these people are connected."""
        self._members.update(user_ids)
        self.rekeyed()

    def rekeyed(self) -> None:
        """Handle op 22 (or a new member): there are new keys to try."""
        for unknown in self._unknown.values():
            unknown.tries = 0

    def speaks(self, ssrc: int, user_id: int) -> tuple[HeldFrame, ...]:
        """Handle op 5 (or an identified key): `user_id` sends on `ssrc`. Returns the frames held for it."""
        self._members.add(user_id)
        self._user_of[ssrc] = user_id
        for old in self.ssrcs_of(user_id)[:-MOST_SSRCS]:
            del self._user_of[old]
        unknown = self._unknown.pop(ssrc, None)
        return tuple(unknown.frames) if unknown is not None else ()

    def left(self, user_id: int) -> tuple[int, ...]:
        """Handle op 13: `user_id` left. Returns their SSRCs."""
        self._members.discard(user_id)
        silent = self.ssrcs_of(user_id)
        for ssrc in silent:
            del self._user_of[ssrc]
        return silent

    def clear(self) -> None:
        """Handle op 2: a new connection, where the server assigns all SSRCs anew."""
        self._members.clear()
        self._user_of.clear()
        self.dropped += sum(len(unknown.frames) for unknown in self._unknown.values())
        self._unknown.clear()

    def may_try(self, ssrc: int, now: float) -> bool:
        """Return whether to try the members' keys on a frame of `ssrc`, whose owner is not known, or has a key that
        does not open it. The call counts as a try.
        """
        unknown = self._unknown_at(ssrc)
        if unknown is None or (unknown.tries >= HELD_FRAMES and now < unknown.tried_at + _RETRY_S):
            return False
        unknown.tries += 1
        unknown.tried_at = now
        return True

    def hold(self, ssrc: int, held: HeldFrame) -> None:
        """Keep a frame of an unknown sender; the oldest one is dropped when too many wait."""
        unknown = self._unknown_at(ssrc)
        if unknown is None:
            self.dropped += 1
            return
        unknown.frames.append(held)
        if len(unknown.frames) > HELD_FRAMES:
            unknown.frames.popleft()
            self.dropped += 1

    def _unknown_at(self, ssrc: int) -> _Unknown | None:
        if ssrc not in self._unknown and len(self._unknown) >= _MAX_UNKNOWN:
            return None
        return self._unknown.setdefault(ssrc, _Unknown())

    def expire(self, now: float) -> None:
        """Drop the frames that waited longer than `HELD_S`."""
        for ssrc, unknown in list(self._unknown.items()):
            while unknown.frames and unknown.frames[0].arrived_at < now - HELD_S:
                unknown.frames.popleft()
                self.dropped += 1
            if not unknown.frames and unknown.tried_at < now - _FORGET_S:
                del self._unknown[ssrc]

    def candidates(self) -> list[int]:
        """Return the members, likeliest sender first: people without an SSRC."""
        return sorted(self._members, key=set(self._user_of.values()).__contains__)
