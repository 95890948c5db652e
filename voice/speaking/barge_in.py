"""Barge-in: decides when the bot ducks, pauses or stops because people speak over it. A state machine without audio or
clock.

Its input is how much voiced sound each person has made, and whether the bot is audible. Speech over the bot first ducks
the bot's voice. Enough speech pauses the bot, and then the words decide: an interruption stops the reply, and after a
backchannel or a noise the reply continues where it was. Short bursts with silence between them do not add up, so an
occasional 'mm-hm' changes nothing. Each person is counted separately.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING

from voice.speaking.backchannel import OverlapIntent

if TYPE_CHECKING:
    from collections.abc import Mapping

# After this much of a person's voiced sound over the bot, it speaks at this level; 1 is unchanged.
DUCK_AFTER_S = 0.2
DUCK_LEVEL = 0.3
# After this much it falls silent. If the sound was only a 'mm-hm' or a laugh it continues; otherwise the rest is not
# said. With a shorter time it reacts to listeners' noises.
STOP_AFTER_S = 0.7
# A silence of this length ends a burst. Silences within a phrase are shorter.
BURST_GAP_S = 0.35
# The end of speech is detected 0.5-1.0 s late, and the text arrives another half second later. A person who speaks for
# longer than this over a paused reply has interrupted it, regardless of the words.
LONGEST_PAUSE_S = 6.0
# Allows for rounding errors in sums of 32 ms windows.
_EPSILON_S = 1e-6


class BargeInAction(Enum):
    """What the room does with the bot's voice."""

    DUCK = auto()  # speak more softly
    PAUSE = auto()  # fall silent with the next frame, keep the rest
    RESUME = auto()  # go on at the same place, at full volume
    STOP = auto()  # drop the rest


@dataclass(slots=True)
class _Voice:
    """One person's speech over the bot. Times are monotonic seconds."""

    total_s: float = 0.0  # voiced sound in their present speech, at the last update
    over_s: float = 0.0  # voiced sound over the bot in the present burst
    since: float = 0.0  # when the burst began
    last_at: float = 0.0
    claims: bool = False  # it was enough to pause the bot, and its words are not known yet
    claimed_at: float = 0.0


class BargeInDetector:
    """One room's detector. Owned by the room's task; not thread-safe.

    `level`: how loud the bot speaks,
    as the action that made it so; at full volume `RESUME`.
    """

    def __init__(self) -> None:
        self._voices: dict[int, _Voice] = {}
        # The last update while the bot was silent: each person's seconds, and when. None once a reply plays.
        self._before: tuple[Mapping[int, float], float] | None = None
        self.level = BargeInAction.RESUME
        self._paused_at = 0.0

    def update(self, voiced: Mapping[int, float], *, audible: bool, now: float) -> BargeInAction | None:
        """Update the seconds of voiced sound in each person's current speech. Silent people may be left out.

        `audible`: the bot's reply is playing. Call this method whenever sound has arrived and a few times each second,
        even while the bot is silent. Otherwise speech from before a reply would count against the reply.
        """
        if not audible:
            # In a crowd this is called hundreds of times a second, so nothing is made of it until a reply begins.
            self._before, self._voices = (voiced, now), {}
            return self._take(BargeInAction.RESUME, now)
        if self._before is not None:
            (spoken, at), self._before = self._before, None
            self._voices = {
                user_id: _Voice(total_s=total_s, since=at, last_at=at) for user_id, total_s in spoken.items()
            }
        for user_id in voiced.keys() | self._voices.keys():
            self._advance(user_id, voiced.get(user_id, 0.0), now)
        if self.level is BargeInAction.PAUSE and now - self._paused_at >= LONGEST_PAUSE_S:
            return self._stop()
        return self._take(self._level_due(), now)

    def on_words(
        self, user_id: int, meaning: OverlapIntent, *, started_at: float, ended_at: float, audible: bool, now: float
    ) -> BargeInAction | None:
        """Handle a person's recognised words, spoken from `started_at` to `ended_at` (start and end of the sound)."""
        if not audible:
            return None
        if meaning is OverlapIntent.STOP:
            return self._stop()
        voice = self._voices.get(user_id)
        if voice is None or not voice.claims or ended_at < voice.since:
            return None
        if meaning is OverlapIntent.YIELD:
            return self._stop()
        if started_at > voice.claimed_at:
            # A breath or a click after the interruption was recognised first. Wait for the words of the interruption
            # itself.
            return None
        voice.claims, voice.over_s = False, 0.0
        return self._take(self._level_due(), now)

    def _advance(self, user_id: int, total_s: float, now: float) -> None:
        voice = self._voices.setdefault(user_id, _Voice(since=now, last_at=now))
        # If the total is smaller than before, new speech has begun.
        grown_s = total_s - voice.total_s if total_s >= voice.total_s else total_s
        voice.total_s = total_s
        burst_over = now - voice.last_at > BURST_GAP_S and not voice.claims
        if burst_over or (grown_s > 0 and voice.over_s == 0.0):
            voice.over_s, voice.since = 0.0, now
        if grown_s > 0:
            voice.over_s += grown_s
            voice.last_at = now
            if not voice.claims and voice.over_s >= STOP_AFTER_S - _EPSILON_S:
                voice.claims, voice.claimed_at = True, now
        elif burst_over and total_s == 0.0:
            del self._voices[user_id]

    def _level_due(self) -> BargeInAction:
        if any(voice.claims for voice in self._voices.values()):
            return BargeInAction.PAUSE
        if any(voice.over_s >= DUCK_AFTER_S - _EPSILON_S for voice in self._voices.values()):
            return BargeInAction.DUCK
        return BargeInAction.RESUME

    def _take(self, level: BargeInAction, now: float) -> BargeInAction | None:
        if level is self.level:
            return None
        self.level = level
        if level is BargeInAction.PAUSE:
            self._paused_at = now
        return level

    def _stop(self) -> BargeInAction:
        self.level = BargeInAction.RESUME
        for voice in self._voices.values():
            voice.claims, voice.over_s = False, 0.0
        return BargeInAction.STOP
