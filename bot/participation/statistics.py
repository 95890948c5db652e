"""Counts decisions and their reasons, and writes them with the last hour's costs as sentences for /status."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from bot.participation.costs import Cost
from bot.texts.text import Text, counted, joined

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bot.brain.decider import Decision, Reason
    from bot.participation.costs import CostCeiling
    from bot.participation.guild_participation import GuildParticipation


class ParticipationStatistics:
    """The decisions in one room. `skipped`: how often the model found that there was nothing to say."""

    def __init__(self) -> None:
        self.skipped = 0
        self._took_part: Counter[Reason] = Counter()
        self._kept_silent: Counter[Reason] = Counter()

    def count(self, decision: Decision) -> None:
        (self._took_part if decision.answer else self._kept_silent)[decision.reason] += 1

    def format(self, guild: GuildParticipation, *, silenced: bool, now: float) -> Text:
        """Return plain sentences. `silenced`: whether the bot is silenced in this room; `now`: monotonic seconds."""
        sentences = []
        if self._took_part:
            total = self._took_part.total()
            sentences.append(
                Text("I took part {times} ({reasons}).", times=_times(total), reasons=_listed(self._took_part))
            )
        if self.skipped:
            sentences.append(Text("{times} there was nothing to say after all.", times=_times(self.skipped)))
        if self._kept_silent:
            total = self._kept_silent.total()
            reasons = _listed(self._kept_silent)
            sentences.append(Text("I kept silent {times} ({reasons}).", times=_times(total), reasons=reasons))
        cost = guild.costs.last_hour(now)
        if cost != Cost():
            sentences.append(Text("The last hour took {amounts}.", amounts=_amounts(cost, guild.costs.ceiling)))
        if guild.listens_only:
            return joined((*sentences, Text("I only write down what is said.")))
        sentences.append(Text("I speak in the mode {mode}.", mode=guild.voice_mode.value))
        if guild.silence.always:
            sentences.append(Text("A moderator has silenced me."))
        elif silenced:
            sentences.append(Text("I am silenced for now; /talk lets me speak."))
        return joined(sentences)


def _amounts(cost: Cost, ceiling: CostCeiling) -> Text:
    amounts = (
        (cost.calls, ceiling.calls, Text("calls of the model")),
        (cost.tokens, ceiling.tokens, Text("tokens")),
        (cost.spoken_s, ceiling.spoken_s, Text("seconds of speech")),
    )
    return joined(
        (
            Text("{amount} of {limit} {what}", amount=round(amount), limit=round(limit), what=what)
            if limit
            else Text("{amount} {what}", amount=round(amount), what=what)
            for amount, limit, what in amounts
        ),
        ", ",
    )


def _listed(decisions: Mapping[Reason, int]) -> str:
    most_first = sorted(decisions.items(), key=lambda each: -each[1])
    return ", ".join(f"{number} {reason.value.replace('_', ' ')}" for reason, number in most_first)


def _times(number: int) -> Text:
    return counted(number, "{count} time", "{count} times")
