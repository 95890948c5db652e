"""Speech-to-speech in a whole room: which sound the model gets and keeps, and what it forgets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from bot.brain.context import QuoteFinder
from bot.llm.model_calls import Payer
from bot.realtime.port import RealtimeServices, RunSession
from bot.room.room import Room
from compaction.memory.quotes import Quote
from compaction.model import Turn
from compaction.session import SessionTimeline
from tests.bot.realtime.bridge_scene import remembered
from tests.bot.room.cinema import Cinema, a_cinema
from tests.bot.room.room_scene import TICK_S, living, silenceable
from tests.fakes.hearing import speech
from tests.fakes.realtime import FakeRealtime
from tests.fakes.room_channel import ADA, BO
from tests.patience import settle
from voice.realtime.port import Briefing, RealtimeNews, ToolRunner
from voice.realtime.settings import RealtimeSettings


class Remembering:
    """A `QuoteFinder` that finds the same about every question."""

    async def find(self, question: Turn, timeline: SessionTimeline, **_: object) -> tuple[Quote, ...]:
        """Return two quotes."""
        return remembered(question)


class Studio:
    """A `Cinema` whose bot uses speech-to-speech."""

    def __init__(self, cinema: Cinema) -> None:
        self.cinema = cinema
        self.house = cinema.house
        # There is no language model besides the speech-to-speech model.
        self.house.can_skip = False
        self.settings = RealtimeSettings(model="gpt-realtime")
        self.sessions: list[FakeRealtime] = []

    @asynccontextmanager
    async def living(self) -> AsyncIterator[FakeRealtime]:
        """Run the room and yield its connected session."""
        services = self.house.services()
        realtime = RealtimeServices(
            settings=self.settings,
            new_session=self._new_session,
            instructions=services.replies.instructions,
            recogniser=services.speech.recogniser,
            fallback_name=services.replies.responder_name(),
            zone=services.zone,
            clock=services.clock,
            observe=services.observe,
        )
        services = replace(services, screens=self.cinema.screens, realtime=realtime)
        async with living(self.house, room=Room(self.house.channel, services)) as (_, task):
            await settle(lambda: (bool(self.sessions) and self.sessions[0].connected) or task.done())
            yield self.sessions[0]

    def _new_session(
        self,
        brief: Callable[[], Briefing],
        on_event: Callable[[RealtimeNews], None],
        run_tool: ToolRunner,
        payer: Payer,
    ) -> tuple[FakeRealtime, RunSession]:
        assert payer.guild_id == self.house.channel.guild_id
        session = FakeRealtime(brief, on_event)
        self.sessions.append(session)

        async def live() -> None:
            session.connect()
            await asyncio.Event().wait()

        return session, live

    async def say(self, user_id: int, text: str) -> None:
        self.sessions[0].heard.append(text)
        await self.house.say(user_id, text)

    async def begin(self) -> None:
        """Let Ada ask a question and get an answer, because the bot makes no remarks before anybody has spoken."""
        self.sessions[0].answers.append("I am.")
        await self.say(ADA.id, "Roomtone, are you there?")
        await self.house.reply(1)


@asynccontextmanager
async def a_studio(folder: Path) -> AsyncIterator[Studio]:
    """Open a `Cinema` with speech-to-speech."""
    async with a_cinema(folder) as cinema:
        yield Studio(cinema)


@pytest.mark.parametrize(
    ("wish", "when"),
    [
        ("opt-out", "group waits"),
        ("opt-out", "in flight"),
        ("opt-out", "no words"),
        ("forget", "group waits"),
        ("forget", "in flight"),
        ("forget", "no words"),
        ("forget", "speaks"),
    ],
)
async def test_the_model_keeps_no_sound_of_somebody_who_does_not_want_it(tmp_path: Path, wish: str, when: str) -> None:
    """Sound that is no turn yet leaves the model's conversation with /opt-out and /forget-me, and what others have said
    stays. The sound may wait for others to finish, be in flight or have no words; what is still spoken is never sent.
    """
    async with a_studio(tmp_path) as studio, studio.living() as session:
        house = studio.house
        await silenceable(house)
        await studio.say(BO.id, "We leave at nine.")
        gate = asyncio.Event()
        if when in {"group waits", "in flight"}:
            # Her words wait for his, or for their own transcript.
            session.gates["Bo speaks:" if when == "group waits" else "Ada speaks:"] = gate
        if when != "speaks":
            session.heard.append("..." if when == "no words" else "A walrus sleeps.")
        session.heard.append("I bring the bread.")
        started = house.clock.monotonic()
        await house.pass_time(TICK_S if when == "speaks" else 2.5)
        house.channel.connections[-1].hear([*speech(ADA.id, at=started), *speech(BO.id, at=started + 0.5)])
        if when != "speaks":
            await house.pass_time(1.5)
            assert "Ada speaks:" in session.items.values()
        if when == "no words":
            await settle(lambda: len(house.turns) == 2)
        if wish == "opt-out":
            await house.participation.set_opt_out(house.channel.guild_id, ADA.id, out=True)
        else:
            house.forget(ADA)
        if when in {"group waits", "no words"}:
            assert "Ada speaks:" not in session.items.values()
        gate.set()
        await house.pass_time(4.0)
        await settle(lambda: len(house.turns) == 2)
        assert session.heard == []
        assert list(session.items.values()) == ["Bo speaks:", "We leave at nine.", "Bo speaks:", "I bring the bread."]


async def test_the_model_keeps_no_quotes_after_somebody_has_opted_out(tmp_path: Path) -> None:
    """What was recalled for the last answer may be their words. A new conversation may begin before the next answer."""
    async with a_studio(tmp_path) as studio:
        studio.house.quoting = lambda *_: cast("QuoteFinder", Remembering())
        async with studio.living() as session:
            await silenceable(studio.house)
            await studio.begin()
            assert "From memory, Bo" in session.instructions
            await studio.house.participation.set_opt_out(studio.house.channel.guild_id, BO.id, out=True)
            assert "From memory, Bo" not in session.instructions
            session.connect()
            assert "From memory, Bo" not in session.instructions
