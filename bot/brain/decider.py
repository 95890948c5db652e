"""Whether the bot answers what was just said, or says something of its own accord. Pure: everything is handed in.

It is the cheap gate before the model: what is certainly not for the bot never costs a call. Where words alone cannot
tell, the model is asked and may answer SKIP (`Decision.may_skip`). Who carries a reply out is `bot.brain.reply`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum, StrEnum, auto

from bot.brain.addressing import calls_any, is_follow_up, needs_no_reply, word_count
from bot.brain.lexicon import is_question
from bot.brain.wakeword import calls_name, mentions_name
from bot.guild import VoiceMode
from voice.listening.coalesce import is_effect

# 'What?' and 'Why not?' are asked of whoever spoke last.
ROOM_QUESTION_WORDS = 4


class Reason(StrEnum):
    """Why the bot answers or stays silent; logged with every decision and counted."""

    WAKE_NAME = "wake_name"
    ALONE_TOGETHER = "alone_together"
    ENGAGED = "engaged"
    ROOM_QUESTION = "room_question"
    SCREEN = "screen"
    QUIET_ROOM = "quiet_room"
    NOT_ADDRESSED = "not_addressed"
    MENTIONED = "mentioned"
    ADDRESSED_TO_OTHER = "addressed_to_other"
    WANTS_NO_ANSWER = "wants_no_answer"
    OTHER_BOT = "other_bot"
    OPTED_OUT = "opted_out"
    NOTHING_SAID = "nothing_said"
    EFFECT = "effect"
    SILENCED = "silenced"
    OVER_CEILING = "over_ceiling"
    BETTER_WAITS = "better_waits"
    BUSY = "busy"


class PendingReply(Enum):
    """What waits behind the answer in the works; there is never more than one."""

    NOTHING = auto()
    DOUBTFUL = auto()  # it may yet turn out that nothing is to be said
    CERTAIN = auto()


@dataclass(frozen=True, slots=True)
class HeardText:
    """What one person, or bot, said just now."""

    text: str
    by_bot: bool = False


@dataclass(frozen=True, slots=True)
class Situation:
    """What things are like in the room. `people` counts the channel's members who are not bots."""

    people: int
    wake_names: tuple[str, ...]
    mode: VoiceMode = VoiceMode.ENGAGED
    # Display names of everybody else here, bots too.
    others: tuple[str, ...] = ()
    # The speaker talks with the bot; and its last words to them were a question.
    engaged: bool = False
    asked: bool = False
    opted_out: bool = False
    silenced: bool = False
    over_ceiling: bool = False
    waiting: PendingReply = PendingReply.NOTHING
    # An answer is in the works, or somebody is speaking.
    busy: bool = False
    # Who finds the words can tell that there is nothing to say.
    discerning: bool = True
    # What gives occasion when nobody said anything: something on a shared screen, or a long silence.
    screen: bool = False
    lull: bool = False


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether to speak, and why. `supersedes`: it takes the place of the reply that waits. `may_skip`: the model may
    find that nothing is to be said."""

    answer: bool
    reason: Reason
    supersedes: bool = False
    may_skip: bool = False


def decide(said: HeardText | None, situation: Situation) -> Decision:
    """Return whether the bot speaks, now that `said` was said; None: nobody said anything, but there is an occasion.

    It never answers a bot, so that two of them cannot talk to each other for ever. A newer turn that deserves an
    answer supersedes the one that waits, because people have moved on; but nothing doubtful takes the place of what
    somebody surely asked.
    """
    wanted = _unasked(situation) if said is None else _asked(said, situation)
    if not wanted.answer:
        return wanted
    if situation.silenced:
        return Decision(False, Reason.SILENCED)
    if situation.over_ceiling:
        return Decision(False, Reason.OVER_CEILING)
    if wanted.may_skip and situation.waiting is PendingReply.CERTAIN:
        return Decision(False, Reason.BETTER_WAITS)
    return replace(wanted, supersedes=situation.waiting is not PendingReply.NOTHING)


def _asked(said: HeardText, situation: Situation) -> Decision:
    """Return what `said` deserves, whether or not the bot may speak."""
    if (ruled_out := _ruled_out(said, situation)) is not None:
        return Decision(False, ruled_out)
    if calls_name(said.text, situation.wake_names):
        return Decision(True, Reason.WAKE_NAME)
    mentioned = mentions_name(said.text, situation.wake_names)
    if situation.mode is VoiceMode.NAME:
        return Decision(False, Reason.MENTIONED if mentioned else Reason.NOT_ADDRESSED)
    if calls_any(said.text, situation.others):
        return Decision(False, Reason.ADDRESSED_TO_OTHER)
    if needs_no_reply(said.text) and not situation.asked:
        return Decision(False, Reason.WANTS_NO_ANSWER)
    if situation.people == 1:
        return Decision(True, Reason.ALONE_TOGETHER)
    if situation.engaged and (situation.asked or is_follow_up(said.text)):
        return Decision(True, Reason.ENGAGED, may_skip=True)
    to_the_room = is_question(said.text) and word_count(said.text) >= ROOM_QUESTION_WORDS
    if situation.mode is VoiceMode.FREE and situation.discerning and to_the_room:
        return Decision(False, Reason.BUSY) if situation.busy else Decision(True, Reason.ROOM_QUESTION, may_skip=True)
    return Decision(False, Reason.MENTIONED if mentioned else Reason.NOT_ADDRESSED)


def _ruled_out(said: HeardText, situation: Situation) -> Reason | None:
    """Return why nothing like this is ever answered; None if it may be."""
    if said.by_bot:
        return Reason.OTHER_BOT
    if situation.opted_out:
        return Reason.OPTED_OUT
    if not any(letter.isalnum() for letter in said.text):
        return Reason.NOTHING_SAID
    return Reason.EFFECT if is_effect(said.text) else None


def _unasked(situation: Situation) -> Decision:
    """Return whether to say something of the bot's own accord. That is never worth breaking in for."""
    reason = Reason.SCREEN if situation.screen else Reason.QUIET_ROOM
    if not (situation.screen or situation.lull) or situation.people == 0 or not situation.discerning:
        return Decision(False, Reason.NOTHING_SAID)
    if situation.busy or situation.waiting is not PendingReply.NOTHING:
        return Decision(False, Reason.BUSY)
    # A screen may be commented on for who talks with the bot anyway; for the room only where it speaks freely.
    free = situation.mode is VoiceMode.FREE or situation.people == 1 or situation.engaged
    if situation.mode is VoiceMode.NAME or (situation.screen and not free):
        return Decision(False, Reason.NOT_ADDRESSED)
    return Decision(True, reason, may_skip=True)
