"""A session to which a test adds turns, and the model input for a reply to one of them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC

from bot.brain.context import ModelContext, build_context_messages
from bot.brain.tools.toolbox import Toolbox
from bot.guild import PromptPolicy
from compaction.model import Mode, SessionId, Turn, TurnKind, TurnPart
from compaction.session import SessionTimeline
from compaction.summary.extractive import ExtractiveSummariser
from tests.fakes.clock import FakeClock
from tests.fakes.turn_store import InMemoryTurnStore

OWN = ("Roomtone",)
START = 1_760_000_000.0


class SessionTalk:
    """A session's memory to which a test adds turns."""

    def __init__(self, timeline: SessionTimeline) -> None:
        self.timeline = timeline
        self.at = START

    async def say(self, speaker: str, text: str, kind: TurnKind = TurnKind.SPEECH) -> Turn:
        """Add one turn, ten seconds after the previous one."""
        self.at += 10
        part = TurnPart(speaker.casefold(), speaker, text)
        return await self.timeline.append(kind, (part,), started_at=self.at - 3, ended_at=self.at)

    def context(
        self, current: Turn, *, max_input_tokens: int = 10_000, policy: PromptPolicy | None = None
    ) -> ModelContext:
        """Return the model input for a reply to `current`."""
        context = build_context_messages(
            self.timeline,
            current,
            system=["You are in a room."],
            max_input_tokens=max_input_tokens,
            now=self.at,
            zone=UTC,
            policy=policy,
            toolbox=Toolbox(),
        )
        return replace(context, names=OWN)


@asynccontextmanager
async def a_talk() -> AsyncIterator[SessionTalk]:
    """Open an empty session."""
    async with SessionTimeline.open(
        SessionId("s"),
        store=InMemoryTurnStore(),
        summariser=ExtractiveSummariser(),
        mode=Mode.SUMMARY,
        clock=FakeClock(START),
    ) as timeline:
        yield SessionTalk(timeline)
