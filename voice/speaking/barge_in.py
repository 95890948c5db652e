"""When the bot makes room because people speak over it: a state machine without audio and without a clock.

It is told how much voiced sound everybody has made, and whether the bot is being heard. Somebody's voice over the
bot's first ducks it; when it qualifies as speech it pauses it, and the words decide: real ones stop the reply, a
backchannel or a noise that was taken for speech lets it go on where it was. Short bursts with silence between them
do not add up, so an 'mm-hm' now and then costs nothing; several people are counted each for themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING

from voice.speaking.backchannel import OverlapIntent

if TYPE_CHECKING:
    from collections.abc import Mapping

# A silence this long ends a burst: the closures and breaths within a phrase are shorter.
BURST_GAP_S = 0.35
# The end of speech is known 0.5-1.0 s after it, the text another half second later. Who speaks on for longer than
# this over a reply that waits has the floor, whatever the words.
LONGEST_PAUSE_S = 6.0
# Sums of 32 ms windows are not exact.
_EPSILON_S = 1e-6


class BargeInAction(Enum):
    """What is to become of the bot's voice."""

    DUCK = auto()  # speak more softly
    PAUSE = auto()  # be silent with the next frame, and keep the rest
    RESUME = auto()  # go on where it was, at full volume
    STOP = auto()  # the rest is not said


class PlaybackLevel(Enum):
    """How the bot speaks now."""

    FULL = auto()
    DUCKED = auto()
    PAUSED = auto()


@dataclass(slots=True)
class _Voice:
    """One person's voice as far as it is over the bot's. Times are monotonic seconds."""

    told_s: float = 0.0  # of voiced sound in their present speech, as last told
    over_s: float = 0.0  # of voiced sound over the bot's in the present burst
    since: float = 0.0  # when the burst began
    last_at: float = 0.0
    claims: bool = False  # it qualified, and its words are not judged yet
    claimed_at: float = 0.0


class BargeInDetector:
    """Decides for one room. Owned by the room's task; not thread-safe.

    `duck_after_s`, `stop_after_s`: seconds of somebody's voiced sound over the bot's.
    """

    def __init__(self, *, duck_after_s: float, stop_after_s: float) -> None:
        self._duck_after_s = duck_after_s
        self._stop_after_s = stop_after_s
        self._voices: dict[int, _Voice] = {}
        self._stance = PlaybackLevel.FULL
        self._paused_at = 0.0

    @property
    def stance(self) -> PlaybackLevel:
        """How the bot speaks now."""
        return self._stance

    def hear(self, voiced: Mapping[int, float], *, audible: bool, now: float) -> BargeInAction | None:
        """Take how many seconds of voiced sound each person has made in their present speech; who is silent may lack.

        `audible`: the bot is in the midst of a reply that sounds. Call it whenever sound came and a few times a
        second besides, also while the bot is silent: what was said before it began is not said over it.
        """
        if not audible:
            self._note_while_silent(voiced, now)
            return self._take(PlaybackLevel.FULL, now)
        for user_id in voiced.keys() | self._voices.keys():
            self._advance(user_id, voiced.get(user_id, 0.0), now)
        if self._stance is PlaybackLevel.PAUSED and now - self._paused_at >= LONGEST_PAUSE_S:
            return self._stop()
        return self._take(self._wanted(), now)

    def judged(
        self, user_id: int, meaning: OverlapIntent, *, started_at: float, ended_at: float, audible: bool, now: float
    ) -> BargeInAction | None:
        """Take what somebody's words mean, once they are recognised. Times: when they began and ended, acoustically."""
        if not audible:
            return None
        if meaning is OverlapIntent.BE_SILENT:
            return self._stop()
        voice = self._voices.get(user_id)
        if voice is None or not voice.claims or ended_at < voice.since:
            return None
        if meaning is OverlapIntent.MAKE_ROOM:
            return self._stop()
        if started_at > voice.claimed_at:
            # A breath or a click after the words that claimed the floor, and known sooner: those are still to come.
            return None
        voice.claims, voice.over_s = False, 0.0
        return self._take(self._wanted(), now)

    def _note_while_silent(self, voiced: Mapping[int, float], now: float) -> None:
        self._voices = {user_id: _Voice(told_s=told_s, since=now, last_at=now) for user_id, told_s in voiced.items()}

    def _advance(self, user_id: int, told_s: float, now: float) -> None:
        voice = self._voices.setdefault(user_id, _Voice(since=now, last_at=now))
        # Less than before: another stretch of speech has begun.
        grown_s = told_s - voice.told_s if told_s >= voice.told_s else told_s
        voice.told_s = told_s
        burst_over = now - voice.last_at > BURST_GAP_S and not voice.claims
        if burst_over or (grown_s > 0 and voice.over_s == 0.0):
            voice.over_s, voice.since = 0.0, now
        if grown_s > 0:
            voice.over_s += grown_s
            voice.last_at = now
            if not voice.claims and voice.over_s >= self._stop_after_s - _EPSILON_S:
                voice.claims, voice.claimed_at = True, now
        elif burst_over and told_s == 0.0:
            del self._voices[user_id]

    def _wanted(self) -> PlaybackLevel:
        if any(voice.claims for voice in self._voices.values()):
            return PlaybackLevel.PAUSED
        if any(voice.over_s >= self._duck_after_s - _EPSILON_S for voice in self._voices.values()):
            return PlaybackLevel.DUCKED
        return PlaybackLevel.FULL

    def _take(self, stance: PlaybackLevel, now: float) -> BargeInAction | None:
        before, self._stance = self._stance, stance
        if stance is before:
            return None
        match stance:
            case PlaybackLevel.PAUSED:
                self._paused_at = now
                return BargeInAction.PAUSE
            case PlaybackLevel.DUCKED:
                return BargeInAction.DUCK
            case PlaybackLevel.FULL:
                return BargeInAction.RESUME

    def _stop(self) -> BargeInAction:
        self._stance = PlaybackLevel.FULL
        for voice in self._voices.values():
            voice.claims, voice.over_s = False, 0.0
        return BargeInAction.STOP
