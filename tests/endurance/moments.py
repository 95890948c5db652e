"""What a process is doing, told over its pipe, so that the one that kills it counts where the kill came.

Each activity tells when it begins and when it is over. The kill found what had begun and was not over.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING

from bot.store.turns import SqlTurnStore
from compaction.summary.llm import LlmSummariser

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from bot.clock import Clock
    from bot.store.database import Database
    from compaction.model import CompactionState, Note, NoteId, Segment, SessionId, Turn
    from compaction.ports import Completion, Landing
    from compaction.summary.port import Fold, FoldRequest


# A model takes seconds for a fold. Ours takes long enough that some kills come while it thinks.
MODEL_TAKES_S = 0.05


class Activity(StrEnum):
    """What can be going on. Storing a turn and making a fold can go on at the same time."""

    TURN = "a turn is stored"
    NOTE = "a note is stored"
    FOLD = "a fold is made"
    LANDING = "a fold is stored"
    END = "the end is stored"
    FORGETTING = "a person is forgotten"
    NOTHING = "none of these"


class Activities:
    """In the process: tells what begins and what is over."""

    def __init__(self, tell: Callable[..., None]) -> None:
        self._tell = tell

    @contextmanager
    def doing(self, activity: Activity) -> Iterator[None]:
        """Tell that `activity` goes on while the block runs."""
        self._tell("in", activity.name)
        try:
            yield
        finally:
            self._tell("out", activity.name)


class Moment:
    """In the one that kills: what went on when the last line came."""

    def __init__(self) -> None:
        self._going_on: Counter[Activity] = Counter()

    def hear(self, word: str, name: str) -> None:
        """Take a line of `Activities`: `in` or `out`, and an activity's name."""
        self._going_on[Activity[name]] += 1 if word == "in" else -1

    @property
    def activities(self) -> list[Activity]:
        """Return everything that goes on, or that nothing does."""
        return [each for each, count in self._going_on.items() if count > 0] or [Activity.NOTHING]


class ObservedStore(SqlTurnStore):
    """The bot's store, which tells what is being written."""

    def __init__(self, database: Database, clock: Clock, activities: Activities) -> None:
        super().__init__(database, clock)
        self._doing = activities.doing

    async def append_turn(self, session_id: SessionId, turn: Turn) -> None:
        """Store a turn."""
        with self._doing(Activity.TURN):
            await super().append_turn(session_id, turn)

    async def add_note(self, session_id: SessionId, note: Note) -> None:
        """Store a note."""
        with self._doing(Activity.NOTE):
            await super().add_note(session_id, note)

    async def move_notes_to_pending(self, session_id: SessionId, note_ids: Sequence[NoteId]) -> None:
        """Store that notes are to be folded."""
        with self._doing(Activity.NOTE):
            await super().move_notes_to_pending(session_id, note_ids)

    async def land(self, landing: Landing) -> bool:
        """Store a fold."""
        with self._doing(Activity.LANDING):
            return await super().land(landing)

    async def close(self, session_id: SessionId, segment: Segment | None, state: CompactionState) -> None:
        """Store the end of the session."""
        with self._doing(Activity.END):
            await super().close(session_id, segment, state)


class ObservedSummariser(LlmSummariser):
    """The bot's summariser, which tells when it makes a fold."""

    def __init__(self, model: Completion, *, max_output_tokens: int, activities: Activities) -> None:
        super().__init__(model, max_output_tokens=max_output_tokens)
        self._doing = activities.doing

    async def fold(self, request: FoldRequest) -> Fold:
        """Make a fold."""
        with self._doing(Activity.FOLD):
            await asyncio.sleep(MODEL_TAKES_S)
            return await super().fold(request)
