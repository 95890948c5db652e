"""Counts decisions and their reasons, and writes them with the last hour's costs as sentences for /status."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from bot.brain.decider import Decision, Reason
from bot.cost import NOTHING
from bot.guild import VoiceMode
from bot.participation.costs import CostLedger, cost_in_words
from bot.texts.text import Text, counted, joined, verbatim

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bot.participation.guild_state import GuildState

# What people read of a mode.
MODES: Final[Mapping[VoiceMode, Text]] = {
    VoiceMode.NAME: Text("name: I speak only if somebody says my name"),
    VoiceMode.ENGAGED: Text("engaged: I speak if somebody says my name, goes on after my answer, or is alone with me"),
    VoiceMode.FREE: Text("free: I also answer questions that are for everybody"),
}
# What people read of a reason, before how often it was.
REASONS: Final[Mapping[Reason, Text]] = {
    Reason.WAKE_NAME: Text("somebody said my name"),
    Reason.ALONE_TOGETHER: Text("somebody was alone with me"),
    Reason.ENGAGED: Text("somebody went on talking with me"),
    Reason.ROOM_QUESTION: Text("a question to everybody"),
    Reason.SCREEN: Text("something new on a screen"),
    Reason.QUIET_ROOM: Text("a long silence"),
    Reason.NOT_ADDRESSED: Text("not meant for me"),
    Reason.MENTIONED: Text("only mentioned"),
    Reason.ADDRESSED_TO_OTHER: Text("meant for somebody else"),
    Reason.WANTS_NO_ANSWER: Text("needed no answer"),
    Reason.OTHER_BOT: Text("another bot"),
    Reason.OPTED_OUT: Text("somebody who used /opt-out"),
    Reason.NOTHING_SAID: Text("nothing said"),
    Reason.EFFECT: Text("a sound without words"),
    Reason.SILENCED: Text("I had to be silent"),
    Reason.OVER_CEILING: Text("the limit for this hour was reached"),
    Reason.BETTER_WAITS: Text("another question came first"),
    Reason.BUSY: Text("somebody was speaking"),
}


class ParticipationStatistics:
    """The decisions in one room. `skipped`: how often the model found that there was nothing to say."""

    def __init__(self) -> None:
        self.skipped = 0
        self._took_part: Counter[Reason] = Counter()
        self._kept_silent: Counter[Reason] = Counter()

    def count(self, decision: Decision) -> None:
        (self._took_part if decision.answer else self._kept_silent)[decision.reason] += 1

    def format(self, guild: GuildState, *, now: float) -> Text:
        """Return plain sentences, each on a line. `now`: monotonic seconds."""
        sentences = []
        if self._took_part:
            times, reasons = _times(self._took_part.total()), _listed(self._took_part)
            sentences.append(Text("I spoke {times} ({reasons}).", times=times, reasons=reasons))
        if self.skipped:
            sentences.append(Text("{times} I wanted to speak, but I had nothing to say.", times=_times(self.skipped)))
        if self._kept_silent:
            times, reasons = _times(self._kept_silent.total()), _listed(self._kept_silent)
            sentences.append(Text("I was silent {times} ({reasons}).", times=times, reasons=reasons))
        cost = guild.costs.last_hour(now)
        if cost != NOTHING:
            sentences.append(
                Text("In the last hour I used {amounts}.", amounts=cost_in_words(cost, guild.costs.ceiling))
            )
        if not guild.listens_only:
            sentences.append(mode_sentence(guild.voice_mode))
        return joined(sentences, "\n")


def why_silent(guild: GuildState, *, silenced: bool) -> Text:
    """Return why the bot answers nobody; empty if it answers. `silenced`: it is silenced in its room."""
    if guild.listens_only:
        return Text("I only write down what is said.")
    if guild.silence.always:
        return Text("A server manager has told me to be silent.")
    return Text("I am silent for now. Use /talk to let me speak.") if silenced else verbatim("")


def silenced_for(minutes: int) -> Text:
    """Return the sentence that the bot is silent for so many minutes."""
    return counted(
        minutes,
        "I am silent for {count} minute, or until somebody uses /talk. I still listen.",
        "I am silent for {count} minutes, or until somebody uses /talk. I still listen.",
    )


def over_ceiling(costs: CostLedger, now: float) -> Text:
    """Return the notice that the hour's ceiling is reached, and for how long; or that nothing more may be used at all.
    `now`: monotonic seconds.
    """
    return costs.used_up() or counted(
        max(1, round(costs.free_in_s(now) / 60)),
        "This server has reached its limit for an hour. I am silent for about a minute, but I still "
        "listen. To see the numbers, use /status.",
        "This server has reached its limit for an hour. I am silent for about {count} minutes, but I "
        "still listen. To see the numbers, use /status.",
    )


def mode_sentence(mode: VoiceMode) -> Text:
    return Text("My mode is {mode}.", mode=MODES[mode])


def _listed(decisions: Mapping[Reason, int]) -> Text:
    most_first = sorted(decisions.items(), key=lambda each: -each[1])
    return joined(
        (Text("{reason}: {number}", reason=REASONS[reason], number=number) for reason, number in most_first), ", "
    )


def _times(number: int) -> Text:
    return counted(number, "{count} time", "{count} times")
