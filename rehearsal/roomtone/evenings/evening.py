"""One simulated evening from its seed to what came of it, in a process where nothing else happens meanwhile."""

from __future__ import annotations

import asyncio
import gc
import hashlib
import itertools
import secrets
import tempfile
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import structlog

from rehearsal.roomtone.evenings.disk import killed_connections_rest
from rehearsal.roomtone.evenings.plan import Plan, make_plan
from rehearsal.roomtone.evenings.player import EveningPlayer
from rehearsal.roomtone.evenings.virtual_time import run_virtually
from rehearsal.roomtone.evenings.world import RuleBrokenError, World

# Nothing that a bot logs is worse.
_WORST = 50
# No evening is so long, in virtual seconds.
_LONGEST_S = 20_000.0


@dataclass(frozen=True, slots=True)
class PlayedEvening:
    """One evening that was played. `log`: what happened. `broken`: the rules that the bot has broken."""

    plan: Plan
    log: tuple[str, ...]
    broken: tuple[str, ...]

    @property
    def digest(self) -> str:
        """What differs if anything that was said, posted, recorded or asked of the database does."""
        return hashlib.sha256("\n".join(self.log).encode()).hexdigest()

    @property
    def presses(self) -> int:
        """How often somebody has pressed a button that counted."""
        return sum(" pressed " in line for line in self.log)


def play_evening(seed: int) -> PlayedEvening:
    """Play the evening of a seed, and return what came of it."""
    threads, files = set(threading.enumerate()), _open_files()
    # When garbage is collected depends on what was done before. What is there already is left alone, which is fast.
    gc.freeze()
    gc.disable()
    try:
        with (
            _silent_log(),
            _counted_names(),
            killed_connections_rest(),
            tempfile.TemporaryDirectory(prefix="roomtone-evening-") as folder,
        ):
            world = run_virtually(_play(make_plan(seed), Path(folder)))
            gc.collect()
    finally:
        gc.enable()
        gc.unfreeze()
    for name in sorted(each.name for each in set(threading.enumerate()) - threads):
        world.breaks(f"the thread {name} is left")
    if (left := _open_files() - files) > 0:
        world.breaks(f"{left} files are left open")
    if rooms := sum(room() is not None for room in world.rooms):
        world.breaks(f"{rooms} rooms are left in memory")
    return PlayedEvening(world.plan, tuple(world.log), tuple(world.broken))


def _counted_names() -> AbstractContextManager[object]:
    """Count sessions in place of naming them by chance."""
    numbers = itertools.count()
    return patch.object(secrets, "token_hex", lambda size: f"{next(numbers):0{2 * size}x}")


@contextmanager
def _silent_log() -> Iterator[None]:
    """Log nothing: an evening's own log says what happened."""
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(_WORST))
    try:
        yield
    finally:
        structlog.configure(**before)


def _open_files() -> int:
    """Return how many files this process has open; 0 where the system does not tell."""
    return sum(1 for _ in Path("/dev/fd").iterdir()) if Path("/dev/fd").is_dir() else 0


async def _play(plan: Plan, folder: Path) -> World:
    world = World(plan, folder)
    asyncio.get_running_loop().set_exception_handler(
        lambda _, about: world.breaks(f"{about['message']}: {about.get('exception')!r}")
    )
    player = EveningPlayer(world)
    for part in (player.play, player.close):
        try:
            async with asyncio.timeout(_LONGEST_S):
                await part()
        except RuleBrokenError:
            pass
        except TimeoutError:
            world.breaks("something never ends")
        except Exception as error:  # noqa: BLE001 - a defect that reaches people ends the evening
            world.breaks(f"{type(error).__name__}: {error}")
    for name in sorted(task.get_name() for task in asyncio.all_tasks() - {asyncio.current_task()}):
        world.breaks(f"the task {name} is left")
    world.model = None
    return world
