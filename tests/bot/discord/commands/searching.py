"""A local Discord with an evening that people can search."""

from __future__ import annotations

from datetime import UTC
from functools import partial
from typing import TYPE_CHECKING, Any

from bot.discord.commands.recall import add_recall
from bot.memory.personal_recall import PersonalRecall
from bot.memory.recall import Recall
from bot.store.attendance import AttendanceStore
from bot.store.search.search import SqlRecallIndex
from bot.store.search.vector_store import VectorStore
from tests.bot.discord.remembered import Remembered, remembered
from tests.fakes.clock import FakeClock

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from bot.discord.client import AddCommands
    from bot.memory.session_views import SessionViews
    from tests.bot.evening import Evening


class Later(FakeClock):
    """A second after the evening."""

    def __init__(self, clock: FakeClock) -> None:
        self._evening = clock

    def now(self) -> float:
        return self._evening.now() + 1.0


def recall_command(evening: Evening, views: SessionViews, *, reach: str | None = "server") -> AddCommands:
    """Return what adds the command. `reach`: as in `recall.scope`."""
    index = SqlRecallIndex(evening.database, VectorStore(evening.database))
    recall, attendance = Recall(index, evening.store), AttendanceStore(evening.database)
    found = PersonalRecall(recall, views, attendance, reach=reach, accesses=evening.accesses)
    return partial(add_recall, recall=found, views=views, clock=Later(evening.clock), zone=UTC)


def searching(folder: Path, *, reach: str | None = "server", **how: Any) -> AbstractAsyncContextManager[Remembered]:
    """Start a local Discord with an evening and the command. `how`: see `remembered`."""
    return remembered(folder, lambda evening, views: [recall_command(evening, views, reach=reach)], **how)
