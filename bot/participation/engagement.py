"""What a room knows of its people: who is talking with the bot, and how long it was quiet. Pure.

A person whom the bot has answered stays engaged for a while. Engagement ends when they speak to somebody else, when the
model finds that they do (SKIP), or when others take over the conversation: with a line, or with two where several
people talk with the bot, because there others put in a line. A backchannel, or a word or two from somebody else, do not
end it, nor does what others say over the answer: whoever asked has not got the rest of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.brain.decider import Decision, Reason
from compaction.language.text import is_question

if TYPE_CHECKING:
    from bot.words import Words

# An utterance that lasts so long takes over the conversation. A word or two are a remark in passing.
TAKES_OVER_S = 1.0
# So many lines of others end an engagement, if one person talks with the bot, and if several do.
_LINES_ALONE, _LINES_TOGETHER = 1, 2
# Utterances with these decisions are for other people.
_BETWEEN_OTHERS = frozenset({Reason.NOT_ADDRESSED, Reason.MENTIONED, Reason.ADDRESSED_TO_OTHER, Reason.BUSY})


@dataclass(slots=True)
class _LastReply:
    """When the bot's last reply to somebody ended (monotonic seconds), whether it ended with a question, whether they
    have spoken since, and how many lines of others have come between.
    """

    ended_at: float
    was_question: bool
    spoken_since: bool = False
    lines_between: int = 0


class Engagement:
    """The engagement in one room. `window_s`: how long after a reply a person can go on without the bot's name. Whoever
    has taken back what they said before (`words`) has to call the bot again.
    """

    def __init__(self, words: Words, *, window_s: float) -> None:
        self._words = words
        self._window_s = window_s
        self._last_replies: dict[int, _LastReply] = {}
        self._answering: int | None = None

    def on_reply_begun(self, user_id: int) -> None:
        """Record the start of a reply to this person, who is engaged until it ends."""
        self._answering = user_id

    def on_reply_ended(self, user_id: int, text: str, *, now: float) -> None:
        """Record the end of a reply. `text`: the part that was heard; if it is empty, the reply engages nobody."""
        if self._answering == user_id:
            self._answering = None
        if text:
            self._last_replies[user_id] = _LastReply(now, is_question(text))

    def is_engaged(self, user_id: int, *, at: float, at_once: bool = False) -> bool:
        """Return whether a person who begins to speak at `at` is still talking with the bot.

        `at_once`: only if they have said nothing since the reply, and others no line, where no model tells whom they
        mean.
        """
        if self._answering == user_id:
            return True
        last = self._last_reply(user_id, at)
        if last is None:
            return False
        return not (at_once and (last.spoken_since or last.lines_between))

    def was_asked(self, user_id: int, *, at: float) -> bool:
        """Return whether the bot's last reply to that person was a question that they may be answering at `at`."""
        last = self._last_reply(user_id, at)
        return last is not None and last.was_question

    def _last_reply(self, user_id: int, at: float) -> _LastReply | None:
        last = self._last_replies.get(user_id)
        if last is None or at - last.ended_at > self._window_s:
            return None
        return last if self._words.may_use(user_id, since=last.ended_at) else None

    def on_utterance(self, user_id: int, decision: Decision, *, started_at: float, ended_at: float) -> None:
        """Record an utterance and the decision about it; end engagements if it was for somebody else. Times are
        monotonic seconds.
        """
        if user_id in self._last_replies and decision.reason is not Reason.WANTS_NO_ANSWER:
            self._last_replies[user_id].spoken_since = True
        if decision.reason not in _BETWEEN_OTHERS:
            return
        if decision.reason is Reason.ADDRESSED_TO_OTHER or ended_at - started_at >= TAKES_OVER_S:
            talking = [last for last in self._last_replies.values() if started_at - last.ended_at <= self._window_s]
            most = _LINES_TOGETHER if len(talking) > 1 else _LINES_ALONE
            for last in talking:
                # Not for those who are being answered meanwhile.
                last.lines_between += started_at >= last.ended_at
            self._last_replies = {who: last for who, last in self._last_replies.items() if last.lines_between < most}
        self.remove(user_id)

    def clear(self) -> None:
        """End everybody's engagement."""
        self._last_replies.clear()
        self._answering = None

    def remove(self, user_id: int) -> None:
        """End the engagement of one person."""
        self._last_replies.pop(user_id, None)
        if self._answering == user_id:
            self._answering = None


class QuietTimer:
    """Decides when the room has been quiet for so long that the bot may make an unprompted remark. Pure.

    `after_s`: how long the quiet has to last; 0: never. `every_s`: least time between two remarks. Times are monotonic
    seconds.
    """

    def __init__(self, *, after_s: float, every_s: float, now: float) -> None:
        self.enabled = after_s > 0
        self._after_s = after_s
        self._every_s = every_s
        self._quiet_since = now
        self._used_at: float | None = None

    def reset(self, at: float) -> None:
        """Restart the timer: somebody spoke until `at`, or came in."""
        self._quiet_since = max(self._quiet_since, at)

    def is_due(self, now: float) -> bool:
        """Return whether the room has been quiet for long enough, and the last remark is long enough ago."""
        waited = self._used_at is None or now - self._used_at >= self._every_s
        return self.enabled and waited and now - self._quiet_since >= self._after_s

    def use(self, now: float) -> None:
        """Note that the bot makes a remark at `now`: none is due for `every_s`."""
        self._used_at = now
