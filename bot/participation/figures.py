"""How often the bot took part and kept silent, why, and what the hour has cost: in sentences for /status."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from bot.participation.ledger import Spent

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bot.brain.decider import Decision, Reason
    from bot.participation.ledger import Ceiling
    from bot.participation.standing import GuildParticipation


class Figures:
    """One room's. `skipped`: how often the model found that there was nothing to say."""

    def __init__(self) -> None:
        self.skipped = 0
        self._took_part: Counter[Reason] = Counter()
        self._kept_silent: Counter[Reason] = Counter()

    def count(self, decision: Decision) -> None:
        """Take note of a decision."""
        (self._took_part if decision.answer else self._kept_silent)[decision.reason] += 1

    def told(self, standing: GuildParticipation, *, silenced: bool, now: float) -> str:
        """Return all of it in plain sentences. `silenced`: in this room; `now`: monotonic seconds."""
        sentences = []
        if self._took_part:
            sentences.append(f"I took part {_times(self._took_part.total())} ({_listed(self._took_part)}).")
        if self.skipped:
            sentences.append(f"{_times(self.skipped)} there was nothing to say after all.")
        if self._kept_silent:
            sentences.append(f"I kept silent {_times(self._kept_silent.total())} ({_listed(self._kept_silent)}).")
        spent = standing.ledger.spent(now)
        if spent != Spent():
            sentences.append(f"The last hour took {_cost(spent, standing.ledger.ceiling)}.")
        sentences.append(f"I speak in the mode {standing.voice_mode.value}.")
        if standing.silence.always:
            sentences.append("A moderator has silenced me.")
        elif silenced:
            sentences.append("I am silenced for now; /talk lets me speak.")
        return " ".join(sentences)


def _cost(spent: Spent, ceiling: Ceiling) -> str:
    return ", ".join(
        f"{amount:,.0f} of {limit:,.0f} {what}" if limit else f"{amount:,.0f} {what}"
        for amount, limit, what in (
            (spent.calls, ceiling.calls, "calls of the model"),
            (spent.tokens, ceiling.tokens, "tokens"),
            (spent.spoken_s, ceiling.spoken_s, "seconds of speech"),
        )
    )


def _listed(counted: Mapping[Reason, int]) -> str:
    most_first = sorted(counted.items(), key=lambda each: -each[1])
    return ", ".join(f"{number} {reason.value.replace('_', ' ')}" for reason, number in most_first)


def _times(number: int) -> str:
    return "1 time" if number == 1 else f"{number} times"
