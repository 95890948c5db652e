"""Counts decisions and their reasons, and writes them with the last hour's costs as sentences for /status."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from bot.participation.costs import Cost

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

    def format(self, guild: GuildParticipation, *, silenced: bool, now: float) -> str:
        """Return plain sentences. `silenced`: whether the bot is silenced in this room; `now`: monotonic seconds."""
        sentences = []
        if self._took_part:
            sentences.append(f"I took part {_times(self._took_part.total())} ({_listed(self._took_part)}).")
        if self.skipped:
            sentences.append(f"{_times(self.skipped)} there was nothing to say after all.")
        if self._kept_silent:
            sentences.append(f"I kept silent {_times(self._kept_silent.total())} ({_listed(self._kept_silent)}).")
        cost = guild.costs.last_hour(now)
        if cost != Cost():
            sentences.append(f"The last hour took {_amounts(cost, guild.costs.ceiling)}.")
        sentences.append(f"I speak in the mode {guild.voice_mode.value}.")
        if guild.silence.always:
            sentences.append("A moderator has silenced me.")
        elif silenced:
            sentences.append("I am silenced for now; /talk lets me speak.")
        return " ".join(sentences)


def _amounts(cost: Cost, ceiling: CostCeiling) -> str:
    return ", ".join(
        f"{amount:,.0f} of {limit:,.0f} {what}" if limit else f"{amount:,.0f} {what}"
        for amount, limit, what in (
            (cost.calls, ceiling.calls, "calls of the model"),
            (cost.tokens, ceiling.tokens, "tokens"),
            (cost.spoken_s, ceiling.spoken_s, "seconds of speech"),
        )
    )


def _listed(counted: Mapping[Reason, int]) -> str:
    most_first = sorted(counted.items(), key=lambda each: -each[1])
    return ", ".join(f"{number} {reason.value.replace('_', ' ')}" for reason, number in most_first)


def _times(number: int) -> str:
    return "1 time" if number == 1 else f"{number} times"
