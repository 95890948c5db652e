"""The process that is killed: it checks what the one before it left, and goes on with one phase of a bot's work.

It is the bot's memory: session, compactor, store and forgetting on a real database, without Discord and speech
models, so that a kill takes a fraction of a second. It acknowledges over a pipe what is stored (see `promises`),
tells `begun` when its phase begins, and what it is amid: `in` when that begins, `out` when it is over.
"""

from __future__ import annotations

import asyncio
import os
import random
import traceback
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from enum import StrEnum
from typing import NoReturn

from bot.clock import SystemClock
from bot.store.database import Database, open_database
from bot.store.speech_forgetting import SpeechForgetter
from bot.store.turns import SqlTurnStore
from compaction.events import CompactionEvent, RunLanded
from compaction.model import Mode, TurnKind
from compaction.ports import Completion
from compaction.session import SessionTimeline
from compaction.summary.llm import LlmSummariser
from compaction.summary.port import Fold, FoldRequest
from compaction.window import BATCH_SIZE, RECENT_WINDOW
from tests.bot.conftest import Place
from tests.endurance.promises import FORGETS, T0, Promises, check, note_of, parts_of
from tests.fakes.completion import MoodyModel

FAILED_STATUS = 3
# Turns of one session, so that checking everything stays cheap.
MOST_TURNS = 400
# A model takes seconds for a fold. Ours takes long enough that some kills come while it thinks.
MODEL_TAKES_S = 0.05


class Phase(StrEnum):
    """What the process does when it is killed."""

    SPEECH = "speech"
    FOLD = "fold"
    FORGETTING = "forgetting"
    SHUTDOWN = "shutdown"


class Activity(StrEnum):
    """What a kill must come amid."""

    TURN = "turn"
    FOLD = "fold"
    FORGETTING = "forgetting"


@contextmanager
def _amid(activity: Activity, report: Callable[..., None]) -> Iterator[None]:
    report("in", activity.value)
    try:
        yield
    finally:
        report("out", activity.value)


class SlowSummariser(LlmSummariser):
    """The bot's summariser with a model that takes its time. It tells when it makes a fold."""

    def __init__(self, model: Completion, report: Callable[..., None]) -> None:
        super().__init__(model)
        self._report = report

    async def fold(self, request: FoldRequest) -> Fold:
        """Make a fold."""
        with _amid(Activity.FOLD, self._report):
            await asyncio.sleep(MODEL_TAKES_S)
            return await super().fold(request)


def live(place: Place, phase: Phase, promises: Promises, pipe: int) -> NoReturn:
    """Be the process until it is killed or its phase is over. `pipe`: where acknowledgements are written."""
    status = 0
    try:
        asyncio.run(_live(place, phase, promises, lambda *words: _report(pipe, *words)))
    except BaseException:  # noqa: BLE001 - whatever it is, the parent tells it
        os.write(pipe, ("failed " + traceback.format_exc().replace("\n", "\x1f") + "\n").encode())
        status = FAILED_STATUS
    os._exit(status)


def _report(pipe: int, *words: object) -> None:
    os.write(pipe, (" ".join(map(str, words)) + "\n").encode())


async def _live(place: Place, phase: Phase, promises: Promises, report: Callable[..., None]) -> None:
    async with open_database(place) as database:
        store = SqlTurnStore(database, SystemClock())
        total = await check(place, store, promises)
        if (await store.load(promises.session_id)).ended:
            # It was ended, and killed before it could say so.
            report("turns", total)
            report("ended")
            promises.hear(f"turns {total}")
            promises.hear("ended")
            total = 0
        report("turns", total)
        if phase is Phase.FORGETTING:
            await _forget(database, report)
            return
        async with _session(store, promises, report) as timeline:
            if total >= MOST_TURNS:
                phase = Phase.SHUTDOWN
            await _PHASES[phase](timeline, promises, report)


def _session(
    store: SqlTurnStore, promises: Promises, report: Callable[..., None]
) -> AbstractAsyncContextManager[SessionTimeline]:
    def hear(event: CompactionEvent) -> None:
        if isinstance(event, RunLanded):
            report("landed", event.new_cursor)

    return SessionTimeline.open(
        promises.session_id,
        store=store,
        summariser=SlowSummariser(MoodyModel(), report),
        mode=Mode.SUMMARY,
        clock=SystemClock(),
        guild_id="77",
        rng=random.Random(7),
        on_event=hear,
    )


async def _say(timeline: SessionTimeline, promises: Promises, report: Callable[..., None]) -> None:
    seq = timeline.total_turns
    at = T0 + seq * 3.0
    with _amid(Activity.TURN, report):
        await timeline.append(TurnKind.SPEECH, parts_of(promises.session_id, seq), started_at=at, ended_at=at + 2.0)
    report("turns", seq + 1)
    if seq % 3 == 0:
        name = f"{promises.session_id}-note-{seq}"
        await timeline.add_note(note_of(name))
        report("note", name)


async def _speak(timeline: SessionTimeline, promises: Promises, report: Callable[..., None]) -> None:
    report("begun")
    while timeline.total_turns < MOST_TURNS:
        await _say(timeline, promises, report)


async def _fold(timeline: SessionTimeline, promises: Promises, report: Callable[..., None]) -> None:
    """Fold while people talk on, with a reply after every second turn."""
    while timeline.total_turns <= RECENT_WINDOW + BATCH_SIZE:
        await _say(timeline, promises, report)
    report("begun")
    while timeline.total_turns < MOST_TURNS:
        await _say(timeline, promises, report)
        if timeline.total_turns % 2:
            timeline.context(max_input_tokens=28_672)
            await timeline.retire_live_notes()
        await asyncio.sleep(0)


async def _shut_down(timeline: SessionTimeline, promises: Promises, report: Callable[..., None]) -> None:
    """End the session while a fold may be in flight."""
    await _say(timeline, promises, report)
    timeline.context(max_input_tokens=28_672)
    report("begun")
    await timeline.end()
    report("ended")


async def _forget(database: Database, report: Callable[..., None]) -> None:
    """Forget one person everywhere, as the bot's command does."""
    forgetter = SpeechForgetter(database, SystemClock())
    report("forgetting")
    report("begun")
    with _amid(Activity.FORGETTING, report):
        for person in await forgetter.find(FORGETS):
            await forgetter.forget(person)
    report("forgotten")


_PHASES = {Phase.SPEECH: _speak, Phase.FOLD: _fold, Phase.SHUTDOWN: _shut_down}
