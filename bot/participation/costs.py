"""What a server has cost in the last hour, and whether the ceiling is reached."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from bot.cost import NOTHING, Cost
from bot.texts.text import Text, counted, joined

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from bot.llm.model_calls import ModelCall
    from bot.llm.settings import ModelPrice
    from bot.participation.settings import ParticipationSettings

HOUR_S = 3_600.0
# The settings, in the order of `Cost`.
HOURLY_LIMITS = ("max_calls_per_hour", "max_tokens_per_hour", "max_spoken_s_per_hour")
# An answer takes three calls at most. For every six of the hour's calls one person may ask one question in writing, so
# half of the hour is left to others.
CALLS_FOR_ONE_QUESTION = 6
# Whose questions of the hour are kept.
MOST_QUESTIONS = 10_000
# A price is that of so many tokens.
PRICED_TOKENS = 1_000_000
# Costs within such a time are one entry, so there are at most 3,600 of them.
_TOGETHER_S = 1.0


def cost_of(call: ModelCall, price: ModelPrice | None = None) -> Cost:
    """Return what a call costs. Nobody bills one that failed without an answer, so a dead model uses up no limit.
    `price`: None: it is not known.
    """
    if call.outcome == "failed" and not call.completion_tokens:
        return NOTHING
    dollars = 0.0
    if price is not None:
        dollars = (price.prompt * call.prompt_tokens + price.completion * call.completion_tokens) / PRICED_TOKENS
    return Cost(1, call.prompt_tokens + call.completion_tokens, dollars=dollars)


def cost_in_words(cost: Cost, limits: Cost = NOTHING) -> Text:
    """Return what was used, beside the limits if there are any. What is not used, as without a model, is not named."""
    spoken_s = round(cost.spoken_s)
    amounts = (
        (
            cost.calls,
            limits.calls,
            counted(cost.calls, "{count} request to the language model", "{count} requests to the language model"),
            Text("requests to the language model"),
        ),
        (cost.tokens, limits.tokens, counted(cost.tokens, "{count} token", "{count} tokens"), Text("tokens")),
        (
            spoken_s,
            limits.spoken_s,
            counted(spoken_s, "{count} second of speech", "{count} seconds of speech"),
            Text("seconds of speech"),
        ),
        (cost.dollars, 0, Text("{amount} US dollars", amount=in_dollars(cost.dollars)), Text("US dollars")),
    )
    used = [
        Text("{amount} of {limit} {what}", amount=amount, limit=round(limit), what=what) if limit else alone
        for amount, limit, alone, what in amounts
        if amount
    ]
    return joined(used, ", ") if used else Text("nothing")


def in_dollars(amount: float) -> str:
    """Return an amount of money, with more digits where it is small."""
    return f"{amount:,.2f}" if amount >= 1 else f"{amount:.4f}"


def ceiling_of(settings: ParticipationSettings, guild_id: int) -> Cost:
    """Return the most that an hour may cost a server; 0: no limit."""
    own = next((each for each in settings.servers if each.id == guild_id), None)
    return Cost(
        *(getattr(settings if own is None or getattr(own, name) is None else own, name) for name in HOURLY_LIMITS)
    )


class CostLedger:
    """The costs of one server. Times are monotonic seconds and never go back. Not thread-safe.

    `used`: what it has cost before, oldest first. `on_added`: gets each cost. `used_up`: returns why it may cost
    nothing more though its hour has room, as people read it; None: it may.
    """

    def __init__(
        self,
        ceiling: Cost,
        *,
        used: Iterable[tuple[float, Cost]] = (),
        on_added: Callable[[Cost], None] = lambda _: None,
        used_up: Callable[[], Text | None] = lambda: None,
    ) -> None:
        self.ceiling = ceiling
        self.used_up = used_up
        self._on_added = on_added
        self._entries = deque(used)
        # When each written question was asked, and by whom.
        self._asked: deque[tuple[float, int]] = deque(maxlen=MOST_QUESTIONS)
        # Since the process began.
        self.total = NOTHING

    def add(self, cost: Cost, *, now: float) -> None:
        """Add a cost that was incurred at `now`."""
        self._drop_old(now)
        if self._entries and now - self._entries[-1][0] < _TOGETHER_S:
            begun, before = self._entries[-1]
            self._entries[-1] = (begun, before + cost)
        else:
            self._entries.append((now, cost))
        self.total += cost
        self._on_added(cost)

    def may_ask(self, person_id: int, *, now: float) -> bool:
        """Count a question that somebody asks in writing, unless those of the last hour have taken their share."""
        asked = sum(each == person_id and now - at < HOUR_S for at, each in self._asked)
        if 0 < self.ceiling.calls <= asked * CALLS_FOR_ONE_QUESTION:
            return False
        self._asked.append((now, person_id))
        return True

    def last_hour(self, now: float) -> Cost:
        """Return the sum of the costs of the hour before `now`."""
        self._drop_old(now)
        return sum((cost for _, cost in self._entries), NOTHING)

    def is_over(self, now: float) -> bool:
        """Return whether the hour before `now` has reached the ceiling, or nothing more may be used at all."""
        return self.last_hour(now).reaches(self.ceiling) or self.used_up() is not None

    def free_in_s(self, now: float) -> float:
        """Return the seconds until the cost falls below the ceiling if nothing is added; 0 if it is below already."""
        left = self.last_hour(now)
        if not left.reaches(self.ceiling):
            return 0.0
        for at, entry in self._entries:
            left -= entry
            if not left.reaches(self.ceiling):
                return at + HOUR_S - now
        return HOUR_S

    def _drop_old(self, now: float) -> None:
        while self._entries and now - self._entries[0][0] >= HOUR_S:
            self._entries.popleft()
