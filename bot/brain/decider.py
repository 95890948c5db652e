"""Decides whether the bot answers what was just said, or speaks unasked. Pure: the caller passes in all state.

The decider is the cheap check before the model: speech that is clearly not for the bot costs no call. Where the text
alone is not enough, the model is asked and may answer SKIP (`Decision.may_skip`). `bot.brain.replier` produces
the replies.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum, StrEnum, auto

from bot.brain.first_sentences import meaning_as_said
from bot.brain.wakeword import calls_any, use_of_name, vocatives
from bot.guild import VoiceMode
from compaction.language.text import QUESTION_MARKS
from voice.asr.sound_effect import is_sound_effect
from voice.speaking.backchannel import OverlapIntent, classify_overlap

# Shorter questions ('What?', 'Why not?') go to the person who spoke last, not to the room.
ROOM_QUESTION_WORDS = 4


class Reason(StrEnum):
    """Why the bot answers or stays silent. Logged with every decision, and counted."""

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
    """Whether a question waits behind the current reply, and whether its reply is certain. At most one waits."""

    NONE = auto()
    MAY_SKIP = auto()  # the model may decide to say nothing
    CERTAIN = auto()


@dataclass(frozen=True, slots=True)
class Situation:
    """The state of the room. `people` counts the channel's members who are not bots, and the speaker if others stay."""

    people: int
    wake_names: tuple[str, ...]
    mode: VoiceMode = VoiceMode.ENGAGED
    # Names of everybody in the channel but the speaker, bots included (`bot.brain.wakeword.call_names`).
    other_names: frozenset[str] = frozenset()
    # The speaker is in a conversation with the bot.
    engaged: bool = False
    # The speaker has said nothing since the bot's reply to them: a question then goes on with the bot.
    just_answered: bool = False
    # The bot's last reply to the speaker was a question.
    bot_asked: bool = False
    # The speaker is another bot, or has opted out.
    by_bot: bool = False
    opted_out: bool = False
    silenced: bool = False
    over_ceiling: bool = False
    pending: PendingReply = PendingReply.NONE
    # A reply is being made, or somebody is speaking.
    busy: bool = False
    # The responder can answer SKIP; the embedded one can't.
    can_skip: bool = True
    # The decision on the question that the speaker has begun: it waits for its answer, or they have stopped that.
    begun: Decision | None = None
    # Reasons to speak unasked: something new on a shared screen, or a long silence.
    screen_changed: bool = False
    long_silence: bool = False


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether to speak, and why. `supersedes`: it replaces the waiting question. `may_skip`: the model may decide to
    say nothing. `answers_without_model`: it is certain enough without a model. `for_bot`: what was said is for the bot
    and no part of the talk, whether it is answered or not: it calls the bot, or surely asks it. `goes_on`: it goes on
    with a question whose answer the person has stopped, and is answered with that.
    """

    answer: bool
    reason: Reason
    supersedes: bool = False
    may_skip: bool = False
    answers_without_model: bool = False
    for_bot: bool = field(default=False, compare=False)
    goes_on: bool = field(default=False, compare=False)


def decide(heard: str | None, situation: Situation) -> Decision:
    """Decide whether the bot speaks. `heard` None: nobody spoke, but the bot may have a reason to speak unasked.

    The bot never answers another bot, so that two bots cannot talk for ever. A newer question replaces the waiting one,
    because people have moved on. A reply that may be skipped never replaces one that is certain.
    """
    decision = _decide_unasked(situation) if heard is None else _decide_heard(heard, situation)
    if not decision.answer:
        return decision
    if situation.silenced:
        return Decision(False, Reason.SILENCED, for_bot=decision.for_bot)
    if situation.over_ceiling:
        return Decision(False, Reason.OVER_CEILING, for_bot=decision.for_bot)
    if decision.may_skip and situation.pending is PendingReply.CERTAIN:
        return Decision(False, Reason.BETTER_WAITS, for_bot=decision.for_bot)
    return replace(decision, supersedes=situation.pending is not PendingReply.NONE)


def _decide_heard(heard: str, situation: Situation) -> Decision:
    """Decide whether `heard` needs an answer, regardless of whether the bot may speak now."""
    if situation.by_bot:
        return Decision(False, Reason.OTHER_BOT)
    if situation.opted_out:
        return Decision(False, Reason.OPTED_OUT)
    if not any(letter.isalnum() for letter in heard):
        return Decision(False, Reason.NOTHING_SAID)
    if is_sound_effect(heard):
        return Decision(False, Reason.EFFECT)
    name = use_of_name(heard, situation.wake_names)
    if _is_called(heard, situation):
        # 'Roomtone, stop' has interrupted the reply, which is all that is wanted.
        stops = classify_overlap(name.rest) is OverlapIntent.STOP
        return Decision(not stops, Reason.WANTS_NO_ANSWER if stops else Reason.WAKE_NAME, for_bot=True)
    if situation.begun is not None:
        match classify_overlap(heard):
            case OverlapIntent.YIELD:
                # Whoever goes on need not say the name again, and means whom they meant.
                return replace(situation.begun, for_bot=True, goes_on=True)
            case OverlapIntent.STOP:
                return Decision(False, Reason.WANTS_NO_ANSWER, for_bot=True)
            case OverlapIntent.CONTINUE:
                return Decision(False, Reason.WANTS_NO_ANSWER)
    unmeant = Decision(False, Reason.MENTIONED if name.mentioned else Reason.NOT_ADDRESSED)
    if situation.mode is VoiceMode.NAME:
        return unmeant
    if calls_any(name.words, situation.other_names):
        return Decision(False, Reason.ADDRESSED_TO_OTHER)
    asks = any(mark in heard for mark in QUESTION_MARKS)
    if not (asks or situation.bot_asked) and classify_overlap(heard) is not OverlapIntent.YIELD:
        return Decision(False, Reason.WANTS_NO_ANSWER)
    if situation.people == 1:
        # What somebody tells the bot alone is told all the same.
        return Decision(True, Reason.ALONE_TOGETHER, for_bot=asks or meaning_as_said(heard) is not None)
    # Answering anything right after a reply, without a model, would be 7.8 answers in 10 minutes that nobody wanted.
    answers_without_model = situation.just_answered and (situation.bot_asked or asks)
    if answers_without_model or (situation.engaged and situation.can_skip):
        return Decision(
            True,
            Reason.ENGAGED,
            may_skip=True,
            answers_without_model=answers_without_model,
            for_bot=answers_without_model and asks,
        )
    to_the_room = asks and name.words.spoken_count >= ROOM_QUESTION_WORDS
    if situation.mode is VoiceMode.FREE and situation.can_skip and to_the_room:
        return Decision(False, Reason.BUSY) if situation.busy else Decision(True, Reason.ROOM_QUESTION, may_skip=True)
    return unmeant


def _is_called(heard: str, situation: Situation) -> bool:
    """Return whether somebody calls the bot, also by a misheard name before what people say to a bot."""
    if use_of_name(heard, situation.wake_names).called:
        return True
    return any(
        each.is_misheard(situation.wake_names, situation.other_names) and meaning_as_said(each.rest) is not None
        for each in vocatives(heard)
    )


def _decide_unasked(situation: Situation) -> Decision:
    """Decide whether to speak unasked. The bot interrupts nobody for that."""
    reason = Reason.SCREEN if situation.screen_changed else Reason.QUIET_ROOM
    if not (situation.screen_changed or situation.long_silence) or situation.people == 0 or not situation.can_skip:
        return Decision(False, Reason.NOTHING_SAID)
    if situation.busy or situation.pending is not PendingReply.NONE:
        return Decision(False, Reason.BUSY)
    # Remarks on a screen need somebody who is in a conversation with the bot, or the mode `free`.
    free = situation.mode is VoiceMode.FREE or situation.people == 1 or situation.engaged
    if situation.mode is VoiceMode.NAME or (situation.screen_changed and not free):
        return Decision(False, Reason.NOT_ADDRESSED)
    return Decision(True, reason, may_skip=True)
