"""A room for memory tests: speakers, a store, a model that can fail in several ways, and virtual time."""

from __future__ import annotations

import asyncio
import random
from contextlib import AsyncExitStack

import structlog
from structlog.testing import CapturingLogger

from compaction.context.build import build_payload
from compaction.events import CompactionEvent
from compaction.model import Mode, Note, NoteId, SessionId, Turn, TurnKind, TurnPart
from compaction.payload import Coverage, coverage
from compaction.session import SessionTimeline
from compaction.summary.llm import LlmSummariser
from compaction.summary.port import Summariser
from rehearsal.roomtone.evenings.virtual_time import EPOCH_S, LoopClock
from tests.fakes.completion import MoodyModel
from tests.fakes.turn_store import InMemoryTurnStore

EVENING = SessionId("evening")
SPEAKERS = ("Ada", "Bob", "Cy", "Dora")
CHATTER = (
    "I keep dying on that jump.",
    "Did you see the new trailer last night?",
    "The left door is faster than the right one.",
    "Yeah, okay.",
    "We should take the cabin in Braemar.",
    "Let's meet at nine on Saturday.",
    "The gate code is 4411.",
    "I'm allergic to walnuts.",
    "What do you want to eat later?",
    "The music in this level is amazing.",
    "Haha.",
    "The budget is 450 pounds.",
)


def parts(seq: int, text: str | None = None) -> tuple[TurnPart, ...]:
    """Return what somebody says as turn `seq`: the given text, or some chatter."""
    speaker = SPEAKERS[seq % len(SPEAKERS)]
    return (TurnPart(f"id-{speaker}", speaker, CHATTER[seq * 7 % len(CHATTER)] if text is None else text),)


class MemoryRoom:
    """One session over one store. `enter` opens the session and `leave` closes it."""

    def __init__(
        self,
        *,
        store: InMemoryTurnStore | None = None,
        model: MoodyModel | None = None,
        mode: Mode = Mode.SUMMARY,
        session_id: SessionId = EVENING,
        summariser: Summariser | None = None,
        deaf: bool = False,
        searchable: bool = False,
    ) -> None:
        self.searchable = searchable
        self.deaf = deaf
        self.store = InMemoryTurnStore() if store is None else store
        self.model = MoodyModel() if model is None else model
        self.mode = mode
        self.session_id = session_id
        self.summariser = summariser
        self.events: list[CompactionEvent] = []
        self.log = CapturingLogger()
        self._stack = AsyncExitStack()
        self._timeline: SessionTimeline | None = None

    @property
    def timeline(self) -> SessionTimeline:
        """Return the open session."""
        assert self._timeline is not None
        return self._timeline

    async def enter(self) -> SessionTimeline:
        """Open the session."""
        self._timeline = await self._stack.enter_async_context(
            SessionTimeline.open(
                self.session_id,
                store=self.store,
                summariser=self.summariser or LlmSummariser(self.model),
                mode=self.mode,
                clock=LoopClock(),
                log=structlog.wrap_logger(
                    self.log, processors=[], wrapper_class=structlog.make_filtering_bound_logger(0)
                ),
                guild_id="guild",
                rng=random.Random(7),
                on_event=self._hear,
                searchable=self.searchable,
            )
        )
        return self._timeline

    def _hear(self, event: CompactionEvent) -> None:
        if self.deaf:
            raise RuntimeError("This listener hears nothing.")
        self.events.append(event)

    async def leave(self) -> None:
        """Close the session."""
        self._timeline = None
        await self._stack.aclose()

    async def __aenter__(self) -> MemoryRoom:
        await self.enter()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.leave()

    async def say(self, text: str | None = None, *, kind: TurnKind = TurnKind.SPEECH) -> Turn:
        """Let somebody say something. Each turn takes three seconds of the session's own time."""
        seq = self.timeline.total_turns
        at = EPOCH_S + seq * 3.0
        return await self.timeline.append(kind, parts(seq, text), started_at=at, ended_at=at + 2.0)

    async def talk(self, count: int) -> None:
        """Let people say `count` turns."""
        for _ in range(count):
            await self.say()

    async def wait(self, seconds: float) -> None:
        """Let virtual time pass."""
        await asyncio.sleep(seconds)

    async def begin_fold(self) -> None:
        """Let people say so much that the next context begins a fold, and build that."""
        await self.talk(61)
        self.sent()

    async def fold(self) -> None:
        """Build a context, and wait until the fold that it begins has ended."""
        self.sent()
        await self.timeline.settle()

    async def see(self, name: str, what: str = "the map of Tokyo") -> None:
        """Add a note about something seen on Bob's screen."""
        await self.timeline.add_note(Note(NoteId(name), EPOCH_S, "Bob", f"{what} {name}"))

    def sent(self, *, max_input_tokens: int = 100_000) -> Coverage:
        """Build a context and return which turns its payload covers."""
        context = self.timeline.context(max_input_tokens=max_input_tokens)
        payload = build_payload(context, system=["You take part in a conversation."])
        assert sum(each.tokens for each in payload) <= max_input_tokens
        return coverage(payload, self.timeline.total_turns)

    def logged(self, name: str) -> list[dict[str, object]]:
        """Return the fields of every log line with this name, in order."""
        lines = [dict(call.kwargs) for call in self.log.calls if call.kwargs["event"] == name]
        for line in lines:
            del line["event"]
        return lines


async def fold_until(room: MemoryRoom, total: int) -> None:
    """Say turns up to `total`. Build a context and wait for its run after each turn."""
    while room.timeline.total_turns < total:
        await room.say()
        room.sent()
        await room.timeline.settle()
