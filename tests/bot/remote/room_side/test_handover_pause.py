"""When a pause in speech, or at last silence, is enough to hand a room over."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from bot.remote.room_side.handover_pause import PATIENCE_S, PAUSE_S, WITHIN_S, is_short_pause, until_pause
from tests.fakes.clock import FakeClock

HALF_S = PATIENCE_S + (WITHIN_S - PATIENCE_S) / 2


@pytest.mark.parametrize(
    ("quiet_s", "waited_s", "is_enough"),
    [
        # At first only a real pause counts, however long nobody is heard: a question may just have been asked.
        (60.0, 0.0, False),
        (60.0, PATIENCE_S - 0.1, False),
        (PAUSE_S, PATIENCE_S, True),
        (PAUSE_S - 0.1, PATIENCE_S, False),
        # Half of the time has passed: half the silence.
        (PAUSE_S / 2, HALF_S, True),
        (PAUSE_S / 2 - 0.1, HALF_S, False),
        # At the end anything is.
        (0.0, WITHIN_S, True),
    ],
)
def test_the_longer_a_room_waits_the_less_silence_is_enough(quiet_s: float, waited_s: float, is_enough: bool) -> None:
    """Where people hardly pause, the end of a sentence is better than the middle of one."""
    assert is_short_pause(quiet_s, waited_s=waited_s) is is_enough


class HurriedClock(FakeClock):
    """Whoever sleeps lets the time pass."""

    async def sleep(self, seconds: float) -> None:
        self.advance(seconds)


@dataclass(frozen=True)
class Evening:
    """A room in which somebody is busy in these stretches of time, from the first second that it waits. `answers`: the
    bot, all the time. `silent_from`: nobody is heard from then on.
    """

    busy: tuple[tuple[float, float], ...] = ()
    answers: bool = False
    silent_from: float = WITHIN_S
    over_at: float = 2 * WITHIN_S
    clock: HurriedClock = field(default_factory=HurriedClock)

    def is_busy(self) -> bool:
        """See `SpeakingRoom`."""
        return any(start <= self.clock.monotonic() - self.began_at < end for start, end in self.busy)

    def is_answering(self) -> bool:
        """See `SpeakingRoom`."""
        return self.answers

    @property
    def began_at(self) -> float:
        return HurriedClock().monotonic()

    async def waited_s(self) -> float:
        """Wait for a pause, and return how long it took."""
        await until_pause(
            self,
            lambda: max(0.0, self.clock.monotonic() - self.began_at - self.silent_from),
            self.clock,
            is_over=lambda: self.clock.monotonic() - self.began_at >= self.over_at,
        )
        return self.clock.monotonic() - self.began_at


ALWAYS = ((0.0, 2 * WITHIN_S),)


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("evening", "waited_s"),
    [
        pytest.param(Evening(), PAUSE_S, id="nobody speaks"),
        pytest.param(Evening(((0.0, 3.0),)), 3.0 + PAUSE_S, id="they stop"),
        pytest.param(Evening(((0.0, 3.0), (3.5, 5.0))), 5.0 + PAUSE_S, id="half a second is no pause at first"),
        pytest.param(Evening(ALWAYS, silent_from=0.0), PATIENCE_S, id="what was said is still being recognised"),
        pytest.param(Evening(ALWAYS, silent_from=0.0, answers=True), WITHIN_S, id="the bot answers"),
        pytest.param(Evening(ALWAYS), WITHIN_S, id="they never stop"),
        pytest.param(Evening(ALWAYS, over_at=2.0), 2.0, id="the room ends"),
    ],
)
async def test_a_room_waits_for_a_pause_but_not_for_ever(evening: Evening, waited_s: float) -> None:
    assert await evening.waited_s() == pytest.approx(waited_s, abs=0.11)
