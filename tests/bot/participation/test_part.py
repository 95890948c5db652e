"""A room's part in the talk under whatever happens: it never speaks where it must not."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.brain.decider import PendingReply, Reason
from bot.channel.participants import Participants
from bot.guild import VoiceMode
from bot.participation.part import HUSHED, NOTICES_WAITING, Participation, Working
from bot.participation.settings import ParticipationSettings
from bot.participation.standing import GuildParticipations
from tests.fakes.brain import until
from tests.fakes.choices import FakeChoices, FakeOptOuts
from tests.fakes.clock import FakeClock
from tests.fakes.place import ADA, BO, OTHER_BOT, FakePlace

if TYPE_CHECKING:
    from bot.events import SpokenText
    from bot.participation.standing import GuildParticipation

TEXTS = [
    "Roomtone, what was it?",
    "And on Sunday?",
    "Shut up, Roomtone.",
    "Roomtone, you can talk again.",
    "Stop.",
    "Bo, are you there?",
    "We leave at nine and take the bus.",
    "When does the concert start?",
    "Mm-hm.",
    "[laughter]",
    "...",
]


@dataclass(frozen=True)
class Said:
    """What `SpokenText` tells a part of an utterance."""

    user_id: int
    text: str
    started_at: float


class Table:
    """One part, its server and its clock."""

    def __init__(self, most_calls: int) -> None:
        self.clock = FakeClock()
        self.place = FakePlace(people=[ADA, BO, OTHER_BOT])
        self.participation = GuildParticipations(
            FakeChoices(),
            FakeOptOuts(),
            ParticipationSettings(max_calls_per_hour=most_calls),
            wake_names=("Roomtone",),
            clock=self.clock,
        )
        self.stopped = 0

    async def begin(self) -> tuple[Participation, GuildParticipation]:
        """Return the part and its server's standing."""
        standing = await self.participation.standing(self.place.guild_id)
        part = Participation(
            self.participation,
            standing,
            session_id="evening",
            place=self.place,
            company=Participants(self.place),
            clock=self.clock,
            working=lambda: Working(PendingReply.NONE, busy=False),
            discerning=lambda: True,
            stop=self._stop,
            think=lambda decision: True,
        )
        standing.voice = part
        return part, standing

    def _stop(self) -> None:
        self.stopped += 1


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("say"), st.sampled_from([ADA.id, BO.id, OTHER_BOT.id, 99]), st.sampled_from(TEXTS)),
        st.tuples(st.just("pass"), st.sampled_from([1.0, 40.0, 600.0, 3_600.0]), st.just("")),
        st.tuples(st.just("quiet"), st.sampled_from([0.0, 5.0]), st.just("")),
        st.tuples(st.just("always"), st.just(0), st.just("")),
        st.tuples(st.just("talk"), st.booleans(), st.just("")),
        st.tuples(st.just("mode"), st.sampled_from(VoiceMode), st.just("")),
        st.tuples(st.just("opt"), st.sampled_from([ADA.id, BO.id]), st.sampled_from(["", "out"])),
    ),
    max_size=30,
)


async def live(steps: list[tuple[str, object, str]], most_calls: int) -> list[tuple[object, ...]]:
    """Do the steps and return every decision; whatever was answered was allowed at that moment."""
    table = Table(most_calls)
    part, standing = await table.begin()
    decided: list[tuple[object, ...]] = []
    for step, value, text in steps:
        match step:
            case "pass":
                table.clock.advance(cast("float", value))
            case "quiet":
                minutes = cast("float", value) or None
                await table.participation.quiet(table.place.guild_id, by=BO.id, minutes=minutes)
            case "always":
                await table.participation.quiet_always(table.place.guild_id, by=ADA.id)
            case "talk":
                await table.participation.talk(table.place.guild_id, by=BO.id, moderator=bool(value))
            case "mode":
                await table.participation.choose_mode(table.place.guild_id, cast("VoiceMode", value), by=ADA.id)
            case "opt":
                await table.participation.opt(table.place.guild_id, cast("int", value), out=bool(text))
            case _:
                user_id, now = cast("int", value), table.clock.monotonic()
                part.overheard(user_id, text, started_at=now, ended_at=now)
                silenced, over = part.silenced, standing.ledger.over(now)
                _, decision = part.judge([cast("SpokenText", Said(user_id, text, now))])
                decided.append((user_id, text, decision, silenced, over, user_id in standing.opted_out))
                if decision.answer:
                    part.answers(user_id)
                    part.sent(100)
                    part.answered(user_id, "So it is.", tokens=3, spoken_s=1.0, skipped=False)
    return decided


@settings(deadline=None, max_examples=150)
@given(STEPS, st.integers(1, 4))
def test_it_never_speaks_where_it_must_not(steps: list[tuple[str, object, str]], most_calls: int) -> None:
    """Silenced, over the ceiling, to a bot, or to somebody who does not want to be heard; the same steps twice are
    decided alike; and its name, said by somebody who may, is always answered."""
    decided = asyncio.run(live(steps, most_calls))
    assert decided == asyncio.run(live(steps, most_calls))
    for user_id, text, decision, silenced, over, opted_out in decided:
        forbidden = silenced or over or opted_out or user_id == OTHER_BOT.id
        if forbidden:
            assert not decision.answer  # type: ignore[attr-defined]
        elif text == TEXTS[0]:
            assert (decision.answer, decision.reason) == (True, Reason.WAKE_NAME)  # type: ignore[attr-defined]


@pytest.mark.asyncio
async def test_who_plays_with_it_does_not_fill_the_channel() -> None:
    """Told off and on for ever, it obeys each time and writes what there is room for."""
    table = Table(9)
    part, _ = await table.begin()
    for _ in range(3 * NOTICES_WAITING):
        part.overheard(ADA.id, "Roomtone, be quiet.", started_at=0.0, ended_at=0.0)
        assert part.silenced
        part.overheard(ADA.id, "Roomtone, you can talk again.", started_at=0.0, ended_at=0.0)
        assert not part.silenced
    assert table.stopped == 3 * NOTICES_WAITING
    running = asyncio.create_task(part.run(), name="part")
    await until(lambda: len(table.place.written) == NOTICES_WAITING)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert table.place.written[0] == HUSHED
    assert len(table.place.written) == NOTICES_WAITING
