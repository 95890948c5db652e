"""Opt-outs that cannot be stored hold, are stored when the database is back, and outlive a restart in between."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import threading
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Self

import pytest
import structlog

from bot.participation import waiting_opt_outs
from bot.participation.opt_out_file import FILE_NAME, read_opt_outs, write_opt_outs
from bot.participation.waiting_opt_outs import (
    FIRST_RETRY_S,
    LONGEST_RETRY_S,
    MOST_AT_ONCE,
    MOST_WAITING,
    MOST_WAITING_ON_A_SERVER,
    OptOutWaitsError,
    WaitingOptOuts,
)
from compaction.errors import StoreError
from tests.fakes.choices import FakeOptOuts
from tests.fakes.clock import FakeClock
from tests.patience import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

GUILD, OTHER, ADA, BO = 10, 11, 1, 2
# Turns of the event loop. A choice that can be stored, or tried again, is so after ten.
IDLE_TURNS = 1_000


class CountedOptOuts(FakeOptOuts):
    """A store that counts how often it is asked to store something, and can refuse one person alone."""

    def __init__(self) -> None:
        super().__init__()
        self.tries = 0
        self.refused: int | None = None
        self.goes_on = asyncio.Event()
        self.goes_on.set()

    async def put(self, guild_id: int, person_id: int, *, out: bool) -> None:
        """Count and store it."""
        self.tries += 1
        await self.goes_on.wait()
        if person_id == self.refused:
            raise StoreError("That row is refused.")
        await super().put(guild_id, person_id, out=out)


class Waiting:
    """The opt-outs of a process, in whose folder those that wait are kept."""

    def __init__(self, folder: Path) -> None:
        self.store = CountedOptOuts()
        self.clock = FakeClock()
        self.file = folder / FILE_NAME
        self.opt_outs = self.again()

    def again(self) -> WaitingOptOuts:
        """Return those of the next process."""
        return WaitingOptOuts(self.store, file=self.file, clock=self.clock)

    async def fails(self, person_id: int, *, out: bool, guild_id: int = GUILD) -> OptOutWaitsError:
        """Return what a person is told whose choice cannot be stored."""
        with pytest.raises(OptOutWaitsError) as told:
            await self.opt_outs.put(guild_id, person_id, out=out)
        return told.value

    @asynccontextmanager
    async def away(self) -> AsyncIterator[None]:
        """Run the task, with a database that is away."""
        self.store.broken = True
        async with self.opt_outs.running():
            yield

    def is_empty(self) -> bool:
        """Return whether nothing waits, nothing is being written and nothing is kept."""
        return not self.opt_outs.waiting and not is_writing() and not self.file.exists()

    async def try_again(self) -> None:
        """Let the task try once more, as soon as it sleeps, and return when it does so."""
        tries = self.store.tries
        await until(lambda: self.clock.sleeping > 0, "the task waits before it tries again")
        self.clock.advance(LONGEST_RETRY_S)
        await until(lambda: self.store.tries > tries, "the task tries again")

    async def back(self) -> None:
        """Let the database come back, and return when nothing waits and nothing is kept."""
        self.store.broken = False
        await self.try_again()
        await until(self.is_empty, "everything is stored and the file is gone")


class WritesHeld:
    """Holds each writing of the file until `go_on` is set, or the block is left."""

    def __init__(self) -> None:
        self.begun = 0
        self.most_at_once = 0
        self.go_on = threading.Event()
        self._running = 0
        self._patch = pytest.MonkeyPatch()

    def __enter__(self) -> Self:
        self._patch.setattr(waiting_opt_outs, "write_opt_outs", self._write)
        return self

    def __exit__(self, *_: object) -> None:
        self.go_on.set()
        self._patch.undo()

    def _write(self, file: Path, opt_outs: frozenset[tuple[int, int]]) -> None:
        self.begun += 1
        self._running += 1
        self.most_at_once = max(self.most_at_once, self._running)
        assert self.go_on.wait(PATIENCE_S)
        write_opt_outs(file, opt_outs)
        self._running -= 1


async def until(met: Callable[[], bool], what: str) -> None:
    """Return as soon as something is so, and fail with `what` when nothing is left that could bring it about: all tasks
    wait, and no thread writes the file.
    """
    idle = 0
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(PATIENCE_S):
            # Asked once a turn: a thread may change the file between two questions.
            while not (is_met := met()) and idle < IDLE_TURNS:
                idle = 0 if is_writing() else idle + 1
                await asyncio.sleep(0)
    assert is_met, f"It never happened: {what}."


def is_writing() -> bool:
    """Return whether a task writes the file, or waits to do so."""
    return any(task.get_name() == "opt-outs-file" for task in asyncio.all_tasks())


async def ended(task: asyncio.Task[None]) -> None:
    """Return when a task is over, whatever its end."""
    await until(task.done, f"the task {task.get_name()!r} ends")


@pytest.fixture
def waiting(tmp_path: Path) -> Waiting:
    """Return the opt-outs of a process."""
    return Waiting(tmp_path)


@pytest.mark.asyncio
async def test_what_is_stored_at_once_leaves_nothing_behind(waiting: Waiting) -> None:
    """No file is written and nothing waits."""
    await waiting.opt_outs.put(GUILD, ADA, out=True)
    assert await waiting.opt_outs.of(GUILD) == {ADA}
    assert (waiting.opt_outs.waiting, waiting.file.exists()) == (0, False)


@pytest.mark.asyncio
async def test_an_opt_out_is_stored_when_the_database_is_back(waiting: Waiting) -> None:
    """Whoever opted out while it was away is told what it says, and has opted out in the database afterwards."""
    async with waiting.away():
        error = await waiting.fails(ADA, out=True)
        assert (str(error), error.outlives_restart) == ("The disk is full. Make room.", True)
        for _ in range(3):
            await waiting.try_again()
        assert (waiting.opt_outs.waiting, waiting.store.out) == (1, {})
        waiting.store.broken = False
        assert await waiting.opt_outs.of(GUILD) == {ADA}
        await waiting.back()
        assert waiting.store.out == {GUILD: frozenset({ADA})}


@pytest.mark.asyncio
async def test_a_restart_meanwhile_forgets_no_opt_out(waiting: Waiting) -> None:
    """The next process does not hear them, before and after it has stored what waited. The file is private."""
    waiting.store.broken = True
    await waiting.fails(ADA, out=True)
    assert waiting.file.stat().st_mode & 0o777 == 0o600
    waiting.store.broken = False
    waiting.opt_outs = waiting.again()
    assert await waiting.opt_outs.of(GUILD) == {ADA}
    async with waiting.opt_outs.running():
        await until(lambda: not waiting.file.exists(), "the file is gone")
    assert waiting.store.out == {GUILD: frozenset({ADA})}


@pytest.mark.asyncio
async def test_an_opt_in_is_not_read_from_a_file(waiting: Waiting) -> None:
    """It waits as long as the process runs. After a restart what was stored holds: the person is not heard."""
    await waiting.opt_outs.put(GUILD, ADA, out=True)
    waiting.store.broken = True
    error = await waiting.fails(ADA, out=False)
    assert not error.outlives_restart
    waiting.store.broken = False
    assert await waiting.opt_outs.of(GUILD) == frozenset()
    assert not waiting.file.exists()
    assert await waiting.again().of(GUILD) == {ADA}


@pytest.mark.asyncio
@pytest.mark.parametrize("last", [True, False], ids=["out", "in"])
async def test_the_newest_choice_of_a_person_holds(waiting: Waiting, last: bool) -> None:
    """Of all that they chose while the database was away, in the file too. Another person's choice stays."""
    async with waiting.away():
        await waiting.fails(BO, out=True)
        for out in (not last, last):
            assert (await waiting.fails(ADA, out=out)).outlives_restart is out
        assert read_opt_outs(waiting.file) == ({(GUILD, BO), (GUILD, ADA)} if last else {(GUILD, BO)})
        await waiting.back()
    assert waiting.store.out == {GUILD: frozenset({ADA, BO} if last else {BO})}


@pytest.mark.asyncio
async def test_a_choice_that_overtakes_an_older_one_is_stored_last(waiting: Waiting) -> None:
    """The task is storing an opt-out when the person opts in."""
    async with waiting.away():
        await waiting.fails(ADA, out=True)
        waiting.store.broken = False
        waiting.store.goes_on.clear()
        await waiting.try_again()
        waiting.clock.advance(LONGEST_RETRY_S)
        chooses = asyncio.create_task(waiting.opt_outs.put(GUILD, ADA, out=False), name="command")
        for _ in range(5):
            await asyncio.sleep(0)
        assert await waiting.opt_outs.of(GUILD) == frozenset()
        waiting.store.goes_on.set()
        await ended(chooses)
        await chooses
    assert waiting.store.out == {GUILD: frozenset()}
    assert read_opt_outs(waiting.file) == frozenset()


@pytest.mark.asyncio
async def test_nobody_waits_for_a_database_that_has_just_failed(waiting: Waiting) -> None:
    """A database that does not answer takes long to fail, and many may opt out at once."""
    waiting.store.broken = True
    for person_id in range(1, 20):
        assert (await waiting.fails(person_id, out=True)).outlives_restart
    assert waiting.store.tries == 1
    waiting.store.broken = False
    waiting.clock.advance(FIRST_RETRY_S * 3)
    await waiting.opt_outs.put(GUILD, 20, out=True)
    assert waiting.store.out == {GUILD: frozenset({20})}


@pytest.mark.asyncio
async def test_one_that_is_refused_keeps_nobody_else_from_being_stored(waiting: Waiting) -> None:
    """The others come first at the next try."""
    async with waiting.away():
        for person_id in (ADA, BO):
            await waiting.fails(person_id, out=True)
        waiting.store.broken, waiting.store.refused = False, ADA
        for _ in range(2):
            await waiting.try_again()
        await until(lambda: read_opt_outs(waiting.file) == {(GUILD, ADA)}, "the refused one alone is in the file")
        assert waiting.store.out == {GUILD: frozenset({BO})}


@pytest.mark.asyncio
async def test_where_no_file_can_be_written_the_person_is_told(waiting: Waiting) -> None:
    """It holds as long as the process runs, and is stored later."""
    waiting.file.with_name(f"{FILE_NAME}.new").mkdir()
    async with waiting.away():
        with structlog.testing.capture_logs() as logs:
            assert not (await waiting.fails(ADA, out=True)).outlives_restart
        assert [each["event"] for each in logs] == ["waiting_opt_outs_not_kept", "opt_out_waits"]
        waiting.store.broken = False
        assert await waiting.opt_outs.of(GUILD) == {ADA}
        await waiting.back()
    assert waiting.store.out == {GUILD: frozenset({ADA})}


@pytest.mark.asyncio
async def test_no_more_wait_than_there_is_room_for(waiting: Waiting) -> None:
    """The next one gets the store's own error. Whoever waits already can still change their mind."""
    waiting.file.write_text(json.dumps([[GUILD, person_id] for person_id in range(1, MOST_WAITING + 1)]))
    waiting.opt_outs = waiting.again()
    waiting.store.broken = True
    with pytest.raises(StoreError) as told:
        await waiting.opt_outs.put(OTHER, ADA, out=True)
    assert not isinstance(told.value, OptOutWaitsError)
    await waiting.fails(ADA, out=False)
    assert (GUILD, ADA) not in read_opt_outs(waiting.file)


@pytest.mark.asyncio
async def test_an_opt_out_takes_the_place_of_an_opt_in(waiting: Waiting) -> None:
    """Opt-ins may fill all the room. The oldest goes, and one that is being stored stays."""
    async with waiting.away():
        for person_id in range(1, MOST_WAITING + 1):
            await waiting.fails(person_id, out=False, guild_id=OTHER + person_id % 4)
        waiting.store.broken = False
        waiting.store.goes_on.clear()
        # The task stores the oldest.
        await waiting.try_again()
        with structlog.testing.capture_logs() as logs:
            chooses = asyncio.create_task(waiting.opt_outs.put(GUILD, MOST_WAITING + 1, out=True), name="command")
            kept = {(GUILD, MOST_WAITING + 1)}
            await until(lambda: read_opt_outs(waiting.file) == kept, "the opt-out is in the file")
        assert [(each["event"], each["user_id"]) for each in logs] == [("waiting_opt_in_dropped", 2)]
        assert waiting.opt_outs.waiting == MOST_WAITING
        waiting.store.goes_on.set()
        await ended(chooses)
        await chooses
        await until(waiting.is_empty, "everything is stored and the file is gone")
    assert {guild_id: out for guild_id, out in waiting.store.out.items() if out} == {GUILD: {MOST_WAITING + 1}}


@pytest.mark.asyncio
async def test_a_server_takes_no_other_one_s_room(waiting: Waiting) -> None:
    """Whoever opts out where too many wait takes the place of an opt-in there, or gets the store's own error."""
    waiting.store.broken = True
    await waiting.fails(ADA, out=False, guild_id=OTHER)
    await waiting.fails(ADA, out=False)
    for person_id in range(BO, MOST_WAITING_ON_A_SERVER + 2):
        await waiting.fails(person_id, out=True)
    with pytest.raises(StoreError) as told:
        await waiting.opt_outs.put(GUILD, ADA, out=True)
    assert not isinstance(told.value, OptOutWaitsError)
    await waiting.fails(BO, out=True, guild_id=OTHER)
    # The opt-in of the full server is gone, and that of the other one waits.
    assert waiting.opt_outs.waiting == MOST_WAITING_ON_A_SERVER + 2
    assert len(read_opt_outs(waiting.file)) == MOST_WAITING_ON_A_SERVER + 1


@pytest.mark.asyncio
async def test_a_crowd_does_not_wait_for_a_database_that_hangs(waiting: Waiting) -> None:
    """Beyond a number of people each is told at once that the choice waits. It is in the file, and stored later."""
    waiting.store.goes_on.clear()
    async with waiting.opt_outs.running():
        chooses = [
            asyncio.create_task(waiting.opt_outs.put(GUILD, person_id, out=True), name="command")
            for person_id in range(1, MOST_AT_ONCE + 1)
        ]
        await until(lambda: waiting.store.tries == 1, "the database is asked")
        error = await waiting.fails(MOST_AT_ONCE + 1, out=True)
        assert (str(error), error.outlives_restart) == ("Many people chose at the same time.", True)
        assert len(read_opt_outs(waiting.file)) == MOST_AT_ONCE + 1
        waiting.store.goes_on.set()
        await asyncio.gather(*chooses)
        await until(waiting.is_empty, "everything is stored and the file is gone")
    assert waiting.store.out == {GUILD: frozenset(range(1, MOST_AT_ONCE + 2))}


@pytest.mark.asyncio
async def test_a_disk_that_hangs_keeps_no_opt_out_from_the_database(
    waiting: Waiting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor the command from its end. However often people choose meanwhile, one task waits for the disk."""
    monkeypatch.setattr(waiting_opt_outs, "SAVE_WITHIN_S", 0.01)
    with WritesHeld() as writes, structlog.testing.capture_logs() as logs:
        with waiting.opt_outs.keeping(GUILD, ADA, True):
            await until(lambda: writes.begun == 1, "the file is written")
            for person_id in (ADA, BO):
                await waiting.opt_outs.put(GUILD, person_id, out=True)
        assert waiting.store.out == {GUILD: frozenset({ADA, BO})}
        assert {each["event"] for each in logs} == {"waiting_opt_outs_not_kept"}
        assert sum(task.get_name() == "opt-outs-file" for task in asyncio.all_tasks()) == 2
        writes.go_on.set()
        await until(waiting.is_empty, "nothing is kept")


@pytest.mark.asyncio
async def test_an_opt_out_is_kept_before_the_database_answers(waiting: Waiting) -> None:
    """A database that hangs takes 25 s to fail the first time, too. Whoever is killed meanwhile knows it at the next
    start.
    """
    waiting.store.goes_on.clear()
    chooses = asyncio.create_task(waiting.opt_outs.put(GUILD, ADA, out=True), name="command")
    await until(lambda: read_opt_outs(waiting.file) == {(GUILD, ADA)}, "it is in the file before the database answers")
    assert not chooses.done()
    assert await waiting.again().of(GUILD) == {ADA}
    waiting.store.goes_on.set()
    await ended(chooses)
    assert waiting.is_empty()


@pytest.mark.asyncio
async def test_what_is_kept_and_never_stored_is_stored_by_the_task(waiting: Waiting) -> None:
    """The command ended before it came to that."""
    async with waiting.opt_outs.running():
        for _ in range(5):
            await asyncio.sleep(0)
        with waiting.opt_outs.keeping(GUILD, ADA, True):
            await until(waiting.file.exists, "it is in the file")
            assert await waiting.opt_outs.of(GUILD) == {ADA}
        await until(waiting.is_empty, "everything is stored and the file is gone")
    assert waiting.store.out == {GUILD: frozenset({ADA})}


@pytest.mark.asyncio
async def test_an_opt_out_is_kept_before_the_database_fails_again(waiting: Waiting) -> None:
    """A database that hangs takes 25 s to fail, and the bot may be killed meanwhile."""
    waiting.store.broken = True
    await waiting.fails(ADA, out=True)
    waiting.clock.advance(LONGEST_RETRY_S)
    waiting.store.goes_on.clear()
    chooses = asyncio.create_task(waiting.opt_outs.put(GUILD, BO, out=True), name="command")
    kept = {(GUILD, ADA), (GUILD, BO)}
    await until(lambda: read_opt_outs(waiting.file) == kept, "both are in the file before the database fails")
    assert not chooses.done()
    waiting.store.goes_on.set()
    await ended(chooses)
    with pytest.raises(OptOutWaitsError):
        await chooses


@pytest.mark.asyncio
async def test_a_stop_while_the_database_hangs_forgets_no_opt_out(waiting: Waiting) -> None:
    """Nothing has failed yet. Everything is cancelled, even twice, and the file is written before the bot has ended."""
    waiting.store.goes_on.clear()

    async def serve() -> None:
        async with waiting.opt_outs.running():
            await waiting.opt_outs.put(GUILD, ADA, out=True)

    with WritesHeld() as writes:
        serves = asyncio.create_task(serve(), name="bot")
        await until(lambda: waiting.store.tries == 1, "the database is asked")
        serves.cancel()
        await until(lambda: writes.begun == 1, "the file is written")
        serves.cancel()
        await asyncio.sleep(0)
        assert not serves.done()
        writes.go_on.set()
        await ended(serves)
    assert serves.cancelled()
    assert read_opt_outs(waiting.file) == {(GUILD, ADA)}


@pytest.mark.asyncio
async def test_a_disk_that_hangs_does_not_keep_the_bot_from_ending(
    waiting: Waiting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is logged that opt-outs may be lost."""
    monkeypatch.setattr(waiting_opt_outs, "SAVE_WITHIN_S", 0.01)
    waiting.store.goes_on.clear()
    with WritesHeld(), structlog.testing.capture_logs() as logs:
        async with waiting.opt_outs.running():
            chooses = asyncio.create_task(waiting.opt_outs.put(GUILD, ADA, out=True), name="command")
            await until(lambda: waiting.store.tries == 1, "the database is asked")
            chooses.cancel()
    assert [each["event"] for each in logs] == ["waiting_opt_outs_not_kept"]


@pytest.mark.asyncio
async def test_who_cancels_a_command_does_not_cancel_the_writing_of_the_file(waiting: Waiting) -> None:
    """The next one is written after it and not beside it, and what is stored leaves the file."""
    waiting.store.broken = True
    with WritesHeld() as writes:
        first, second = (
            asyncio.create_task(waiting.opt_outs.put(GUILD, person_id, out=True), name="command")
            for person_id in (ADA, BO)
        )
        await until(lambda: writes.begun == 1, "the file is written")
        first.cancel()
        await ended(first)
        third = asyncio.create_task(waiting.opt_outs.put(OTHER, ADA, out=True), name="command")
        for _ in range(5):
            await asyncio.sleep(0)
        assert writes.begun == 1
        writes.go_on.set()
        for task in (second, third):
            await ended(task)
    assert (first.cancelled(), writes.most_at_once) == (True, 1)
    assert read_opt_outs(waiting.file) == {(GUILD, ADA), (GUILD, BO), (OTHER, ADA)}
    waiting.store.broken = False
    async with waiting.opt_outs.running():
        await waiting.back()
    assert waiting.store.out == {GUILD: frozenset({ADA, BO}), OTHER: frozenset({ADA})}


@pytest.mark.asyncio
async def test_what_is_stored_while_the_file_is_written_is_not_left_in_it(waiting: Waiting) -> None:
    """A later process would take back an opt-in that came since."""
    async with waiting.away():
        await waiting.fails(BO, out=True)
        with WritesHeld() as writes:
            chooses = asyncio.create_task(waiting.opt_outs.put(GUILD, ADA, out=True), name="command")
            await until(lambda: writes.begun == 1, "the file is written")
            waiting.store.broken = False
            await waiting.try_again()
            await until(lambda: waiting.store.out.get(GUILD) is not None, "the other one is stored")
            writes.go_on.set()
            await ended(chooses)
            with pytest.raises(OptOutWaitsError):
                await chooses
        await until(waiting.is_empty, "everything is stored and the file is gone")
    assert waiting.store.out == {GUILD: frozenset({ADA, BO})}


@pytest.mark.asyncio
async def test_who_waits_for_the_file_while_the_task_stores_the_choice_is_told_that_it_is_stored(
    waiting: Waiting,
) -> None:
    """There is no problem any more to tell them of."""
    async with waiting.away():
        await waiting.fails(ADA, out=False)
        with WritesHeld() as writes:
            chooses = asyncio.create_task(waiting.opt_outs.put(GUILD, ADA, out=True), name="command")
            await until(lambda: writes.begun == 1, "the file is written")
            waiting.store.broken = False
            await waiting.try_again()
            await until(lambda: not waiting.opt_outs.waiting, "the choice is stored")
            writes.go_on.set()
            await ended(chooses)
            await chooses
        await until(waiting.is_empty, "the file is gone")
    assert waiting.store.out == {GUILD: frozenset({ADA})}


@pytest.mark.parametrize("text", ["", "[", "{}1", "7", "null", '{"10": 1}', "[" * 100_000])
def test_a_file_that_cannot_be_read_is_put_aside(waiting: Waiting, text: str) -> None:
    """The bot starts, and what is written next does not replace it."""
    waiting.file.write_text(text)
    with structlog.testing.capture_logs() as logs:
        assert waiting.again().waiting == 0
    aside = waiting.file.with_name(f"{FILE_NAME}.unreadable")
    assert [(each["event"], each["log_level"]) for each in logs] == [("waiting_opt_outs_unreadable", "warning")]
    assert (logs[0]["path"], aside.read_text(), waiting.file.exists()) == (str(aside), text, False)


@pytest.mark.parametrize(
    "entry", ['["10", 1]', "[10]", "[10, true]", f"[10, {2**63}]", "[10, 0]", "[1, 2, 3]", "null", '"12"']
)
@pytest.mark.asyncio
async def test_one_damaged_entry_does_not_cost_the_others(waiting: Waiting, entry: str) -> None:
    """Nobody is made up who has not opted out."""
    waiting.file.write_text(f"[[{GUILD}, {ADA}], {entry}, [{GUILD}, {BO}]]")
    with structlog.testing.capture_logs() as logs:
        opt_outs = waiting.again()
    assert await opt_outs.of(GUILD) == {ADA, BO}
    assert opt_outs.waiting == 2
    assert [(each["event"], each["count"]) for each in logs] == [("waiting_opt_outs_damaged", 1)]


def test_a_file_is_on_the_disk_before_it_has_its_name(waiting: Waiting, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a power failure could leave an empty one in the place of the former."""
    synced: list[tuple[int, bool]] = []
    monkeypatch.setattr(os, "fsync", lambda number: synced.append((os.fstat(number).st_ino, waiting.file.exists())))
    write_opt_outs(waiting.file, {(GUILD, ADA)})
    assert synced == [(waiting.file.stat().st_ino, False), (waiting.file.parent.stat().st_ino, True)]


@pytest.mark.asyncio
async def test_a_command_that_is_cancelled_is_carried_out_all_the_same(waiting: Waiting) -> None:
    """Its choice holds already."""
    async with waiting.opt_outs.running():
        waiting.store.goes_on.clear()
        chooses = asyncio.create_task(waiting.opt_outs.put(GUILD, ADA, out=True), name="command")
        await until(lambda: waiting.store.tries == 1, "the database is asked")
        chooses.cancel()
        await ended(chooses)
        waiting.store.goes_on.set()
        await until(lambda: not waiting.opt_outs.waiting, "the choice is stored")
    assert waiting.store.out == {GUILD: frozenset({ADA})}


@pytest.mark.asyncio
async def test_a_defect_in_writing_the_file_is_logged_at_once(
    waiting: Waiting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody awaits the writing, and opt-outs that are not in the file are lost with the process."""

    def fail(*_: object) -> None:
        raise KeyError

    monkeypatch.setattr(waiting_opt_outs, "write_opt_outs", fail)
    with structlog.testing.capture_logs() as logs:
        async with waiting.away():
            await waiting.fails(ADA, out=True)
            await until(lambda: "task_failed" in [line["event"] for line in logs], "the log line")
    assert {line["task"] for line in logs if line["event"] == "task_failed"} == {"opt-outs-file"}
