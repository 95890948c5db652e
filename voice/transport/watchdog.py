"""Detects failures of a connected connection: keys that no longer fit, announced speech that never arrives.

A pure state machine over the reports of the receiver and the gateway; the connection acts on its findings.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TypeAlias

from voice.retry_pause import retry_pause_s

# The same as other users of libdave allow (0.7 s of speech). A re-key costs two or three frames.
FAILURES_BEFORE_RECOVERY = 36
# A recovery leaves and rejoins the group, which takes up to two seconds.
_FIRST_PAUSE_S = 3.0
_LONGEST_PAUSE_S = 60.0
# The group forms within two seconds of joining, which is also how long the voice server waits for slow members.
UNREADY_S = 3.0
# After so many recoveries, or speakers of whom nothing came that a key opens, and nobody heard since, only a new
# connection can help.
MOST_VAIN = 2
# A new connection that did not help either is no reason for the next one soon: everybody sees the bot leave and join.
_FIRST_REPLACE_PAUSE_S = 60.0
_LONGEST_REPLACE_PAUSE_S = 600.0
# An announced speaker is normally heard within one round trip; push-to-talk noise lasts less than this.
DEAF_AFTER_S = 3.0


@dataclass(frozen=True, slots=True)
class RecoverGroup:
    """The end-to-end group is broken for `user_id`: tell the server (op 31) and rejoin it.

    `failures`: how many of their frames in a row could not be decrypted; 0 if the group was never ready.

    For somebody who is not in the group it is found once until they are heard, because the group may have changed
    unnoticed. If they are not in the new one either, their frames are none that anybody in it could have sent: they
    were kept out, or have left and their SSRC is somebody else's whose key is not tried.
    """

    user_id: int
    failures: int


@dataclass(frozen=True, slots=True)
class SpeakerNotHeard:
    """`user_id` was announced as speaking, but nothing of it could be heard."""

    user_id: int


@dataclass(frozen=True, slots=True)
class NobodyHeard:
    """Recoveries, or waiting for announced speakers, did not help: only a new connection can."""


WatchdogFinding: TypeAlias = RecoverGroup | SpeakerNotHeard | NobodyHeard


class _Came(IntEnum):
    """What came of an announced speaker who is not heard. Of several, the last in this list counts."""

    NOTHING = 0
    SILENCE = 1  # there was nothing to hear
    REFUSED = 2  # in the clear, or of somebody outside the group, but the way works: a new connection brings the same
    UNOPENED = 3  # no key opened it


@dataclass(slots=True)
class _Wait:
    """For an announced speaker."""

    since: float
    came: _Came = _Came.NOTHING


@dataclass(slots=True)
class _Failures:
    """One person's frames in a row that no key opened. `in_group`: they were in the group at the last of them."""

    frames: int = 0
    in_group: bool = True


class Watchdog:
    """Watches one connection. Not thread-safe; times are monotonic seconds."""

    def __init__(self) -> None:
        self._failures: dict[int, _Failures] = {}
        self._announced: dict[int, _Wait] = {}
        self._unready_since: float | None = None
        self._unready_user = 0
        # For whom the group was recovered because they were not in it, and who was not heard since.
        self._recovered_for: set[int] = set()
        self._recoveries = 0
        self._recover_from = float("-inf")
        # Since anybody was last heard.
        self._vain_recoveries = 0
        self._vain_waits = 0
        self._replace_from = float("-inf")
        self._replacements = 0

    def failed(self, user_id: int, *, in_group: bool) -> None:
        """Count a frame of `user_id` that the keys of the bot's group do not open. `in_group`: they are in it."""
        self._unready_since = None
        if not in_group and user_id in self._recovered_for:
            self._came(user_id, _Came.REFUSED)
            return
        self._came(user_id, _Came.UNOPENED)
        failures = self._failures.setdefault(user_id, _Failures())
        failures.frames += 1
        failures.in_group = in_group

    def unready(self, user_id: int, now: float) -> None:
        """Record an encrypted frame of `user_id` while the bot is in no group that could decrypt it."""
        self._came(user_id, _Came.UNOPENED)
        if self._unready_since is None:
            self._unready_since = now
        self._unready_user = user_id

    def heard(self, user_id: int) -> None:
        """Record a decrypted frame of `user_id`, which ends their failures."""
        self._vain_recoveries = self._vain_waits = 0
        self._failures.pop(user_id, None)
        self._recovered_for.discard(user_id)
        self._announced.pop(user_id, None)
        self._unready_since = None

    def silent(self, user_id: int) -> None:
        """Record a packet of `user_id` in which there is nothing to hear: silence, or nothing but padding."""
        self._came(user_id, _Came.SILENCE)

    def refused(self, user_id: int) -> None:
        """Record a frame of `user_id` in the clear, which is not heard in an encrypted call."""
        self._came(user_id, _Came.REFUSED)

    def announced(self, user_id: int, now: float) -> None:
        """Handle op 5: `user_id` started to speak."""
        self._announced.setdefault(user_id, _Wait(now))

    def not_recovered(self, user_id: int) -> None:
        """Record that the recovery which was found for `user_id` failed."""
        self._recovered_for.discard(user_id)

    def left(self, user_id: int) -> None:
        self._failures.pop(user_id, None)
        self._announced.pop(user_id, None)
        self._recovered_for.discard(user_id)

    def reconnected(self) -> None:
        """Forget the counts of the previous voice connection."""
        self._failures.clear()
        self._announced.clear()
        self._recovered_for.clear()
        self._unready_since = None
        self._vain_recoveries = self._vain_waits = 0
        self._recoveries = 0
        self._recover_from = float("-inf")

    def check(
        self, now: float, *, connected: bool, ready: bool, in_transition: bool, deafened: bool
    ) -> list[WatchdogFinding]:
        """Return the new findings; each problem is reported once.

        `ready`: the bot is in a group that can decrypt. `in_transition`: keys are changing, so failures are expected
        and not yet judged. `deafened`: Discord sends the bot no sound because somebody has deafened it there, so nobody
        who is announced is waited for.
        """
        if ready:
            self._unready_since = None
        if deafened:
            self._announced.clear()
        if not connected:
            return []
        verdicts: list[WatchdogFinding] = []
        if not in_transition and now >= self._recover_from:
            verdicts += self._judge_group(now)
        verdicts += self._judge_waits(now)
        if now >= self._recover_from + _LONGEST_PAUSE_S:
            self._recoveries = 0
        return verdicts

    def _judge_group(self, now: float) -> list[RecoverGroup | NobodyHeard]:
        user_id, worst = max(self._failures.items(), key=lambda one: one[1].frames, default=(0, _Failures()))
        if worst.frames >= FAILURES_BEFORE_RECOVERY:
            verdict = RecoverGroup(user_id, worst.frames)
        elif self._unready_since is not None and now >= self._unready_since + UNREADY_S:
            verdict = RecoverGroup(self._unready_user, 0)
        else:
            return []
        self._failures.clear()
        self._unready_since = None
        if self._vain_recoveries >= MOST_VAIN and self._may_replace(now):
            return [NobodyHeard()]
        self._vain_recoveries += 1
        if verdict.failures and not worst.in_group:
            self._recovered_for.add(user_id)
        self._pause(now)
        return [verdict]

    def _judge_waits(self, now: float) -> list[SpeakerNotHeard | NobodyHeard]:
        over = {user: wait for user, wait in self._announced.items() if now >= wait.since + DEAF_AFTER_S}
        verdicts: list[SpeakerNotHeard | NobodyHeard] = []
        for user_id, wait in over.items():
            del self._announced[user_id]
            if wait.came is not _Came.SILENCE:
                verdicts.append(SpeakerNotHeard(user_id))
        if any(wait.came in (_Came.SILENCE, _Came.REFUSED) for wait in over.values()):
            self._vain_waits = 0
        elif verdicts:
            self._vain_waits += 1
            if self._vain_waits >= MOST_VAIN and self._may_replace(now):
                verdicts.append(NobodyHeard())
        return verdicts

    def _came(self, user_id: int, what: _Came) -> None:
        wait = self._announced.get(user_id)
        if wait is not None:
            wait.came = max(wait.came, what)

    def _may_replace(self, now: float) -> bool:
        """Return whether a new connection is due, and delay the next one, longer each time."""
        if now >= self._replace_from + _LONGEST_REPLACE_PAUSE_S:
            self._replacements = 0
        if now < self._replace_from:
            return False
        self._vain_recoveries = self._vain_waits = 0
        self._replacements += 1
        self._replace_from = now + retry_pause_s(
            self._replacements, first_s=_FIRST_REPLACE_PAUSE_S, longest_s=_LONGEST_REPLACE_PAUSE_S
        )
        return True

    def _pause(self, now: float) -> None:
        """Delay the next recovery, longer from the third on: repeated recoveries keep the whole room re-keying."""
        self._recoveries += 1
        growing = max(1, self._recoveries - MOST_VAIN + 1)
        self._recover_from = now + retry_pause_s(growing, first_s=_FIRST_PAUSE_S, longest_s=_LONGEST_PAUSE_S)
