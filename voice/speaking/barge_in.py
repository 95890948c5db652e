"""Barge-in: decides when the bot ducks, pauses or stops because people speak over it. A state machine without audio or
clock.

Its input is how much voiced sound each person has made, and whether the bot is audible. Speech over the bot first ducks
the bot's voice. Enough speech pauses the bot, and then the words decide: an interruption stops the reply, and after a
backchannel or a noise the reply continues where it was. Short bursts with silence between them do not add up, so an
occasional 'mm-hm' changes nothing. Each person is counted separately.

The person who is being answered is treated otherwise around the first sound of the answer: who speaks then goes on with
what they were saying, and the bot has begun too soon. It falls silent within a syllable, as people do, and their words
decide: after a 'mm-hm' it continues, and otherwise it gives way and answers the whole.
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
# Whoever asked, and begins to speak so shortly after the end of their question or around the first sound of the answer,
# goes on with it. Later they have listened, and say something new.
GOING_ON_S = 1.5
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
    GIVE_WAY = auto()  # drop the answer: its question goes on
    STOP = auto()  # drop the rest: another person has something to say, or the one who is answered has heard enough
    SILENCE = auto()  # drop the rest: somebody wants silence


@dataclass(frozen=True, slots=True)
class Answering:
    """The spoken question that is being answered. `question_ended_at`: when its last sound ended; `begun_at`: when the
    answer was begun; `sounds_at`: when its first sound was sent, None before that. Monotonic seconds.
    """

    asker_id: int
    question_ended_at: float
    begun_at: float
    sounds_at: float | None = None

    def may_go_on(self, at: float) -> bool:
        """Return whether what the asker begins to say at `at` belongs to the question. While a slow answer is made they
        may talk about something else.
        """
        if self.sounds_at is not None and abs(at - self.sounds_at) <= GOING_ON_S:
            return True
        return self.question_ended_at <= at <= max(self.question_ended_at + GOING_ON_S, self.begun_at)

    def is_continued_by(self, user_id: int, *, started_at: float) -> bool:
        """Return whether a person who begins to speak at that time goes on with the question."""
        return user_id == self.asker_id and self.may_go_on(started_at)


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

    `level`: how loud the bot speaks, as the action that made it so; at full volume `RESUME`. `stopped_by`: whose speech
    ended the last reply that one did.
    """

    def __init__(self) -> None:
        self._voices: dict[int, _Voice] = {}
        # The last update while the bot was silent: each person's seconds, and when. None once a reply plays.
        self._before: tuple[Mapping[int, float], float] | None = None
        self.level = BargeInAction.RESUME
        self.stopped_by: int | None = None
        self._paused_at = 0.0

    def update(
        self, voiced: Mapping[int, float], *, audible: bool, now: float, answering: Answering | None = None
    ) -> BargeInAction | None:
        """Update the seconds of voiced sound in each person's current speech. Silent people may be left out.

        `audible`: the bot's reply is playing. `answering`: its question, if somebody said one; it is known before the
        reply plays. Call this method whenever sound has arrived and a few times each second, even while the bot is
        silent. Otherwise speech from before a reply would count against the reply.
        """
        if not audible and answering is None:
            # In a crowd this is called hundreds of times a second, so nothing is made of it until a reply begins.
            self._before, self._voices = (voiced, now), {}
            return self._take(BargeInAction.RESUME, now)
        if self._before is not None:
            (spoken, at), self._before = self._before, None
            self._voices = {
                user_id: _Voice(total_s=total_s, since=at, last_at=at) for user_id, total_s in spoken.items()
            }
        for user_id in voiced.keys() | self._voices.keys():
            self._advance(user_id, voiced.get(user_id, 0.0), now, audible=audible, answering=answering)
        if self.level is BargeInAction.PAUSE and now - self._paused_at >= LONGEST_PAUSE_S:
            who = min((voice.claimed_at, user_id) for user_id, voice in self._voices.items() if voice.claims)[1]
            return self._end(who, self._voices[who].since, answering)
        return self._take(self._level_due(), now)

    def on_words(
        self,
        user_id: int,
        meaning: OverlapIntent,
        *,
        started_at: float,
        ended_at: float,
        audible: bool,
        now: float,
        answering: Answering | None = None,
    ) -> BargeInAction | None:
        """Handle a person's recognised words, spoken from `started_at` to `ended_at` (start and end of the sound). They
        may speak on.
        """
        if not audible and (answering is None or answering.asker_id != user_id):
            return None
        if meaning is OverlapIntent.STOP:
            self.stopped_by = user_id
            return self._drop(BargeInAction.SILENCE)
        goes_on = answering is not None and answering.is_continued_by(user_id, started_at=started_at)
        voice = self._voices.get(user_id)
        claims = voice is not None and voice.claims and ended_at >= voice.since
        if meaning is OverlapIntent.YIELD and (goes_on or claims):
            return self._end(user_id, started_at, answering)
        if voice is None or not claims or started_at > voice.claimed_at:
            # A breath or a click after the interruption was recognised first. Wait for the words of the interruption
            # itself.
            return None
        voice.claims, voice.over_s = False, 0.0
        return self._take(self._level_due(), now)

    def _advance(self, user_id: int, total_s: float, now: float, *, audible: bool, answering: Answering | None) -> None:
        voice = self._voices.setdefault(user_id, _Voice(since=now, last_at=now))
        # If the total is smaller than before, new speech has begun.
        grown_s = total_s - voice.total_s if total_s >= voice.total_s else total_s
        voice.total_s = total_s
        burst_over = now - voice.last_at > BURST_GAP_S and not voice.claims
        if burst_over or (grown_s > 0 and voice.over_s == 0.0):
            voice.over_s, voice.since = 0.0, now
        if grown_s > 0:
            goes_on = answering is not None and answering.is_continued_by(user_id, started_at=voice.since)
            voice.over_s += grown_s if audible or goes_on else 0.0
            voice.last_at = now
            enough_s = DUCK_AFTER_S if goes_on else STOP_AFTER_S
            if not voice.claims and voice.over_s >= enough_s - _EPSILON_S:
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

    def _end(self, user_id: int, started_at: float, answering: Answering | None) -> BargeInAction:
        """Drop the reply for what a person began to say at `started_at`."""
        self.stopped_by = user_id
        goes_on = answering is not None and answering.is_continued_by(user_id, started_at=started_at)
        return self._drop(BargeInAction.GIVE_WAY if goes_on else BargeInAction.STOP)

    def _drop(self, act: BargeInAction) -> BargeInAction:
        self.level = BargeInAction.RESUME
        for voice in self._voices.values():
            voice.claims, voice.over_s = False, 0.0
        return act
