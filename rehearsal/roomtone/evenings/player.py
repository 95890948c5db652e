"""Plays a simulated evening: one step of its plan after the other, until a rule is broken or it is over."""

from __future__ import annotations

import asyncio
import gc
import hashlib
import itertools
import secrets
import tempfile
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final
from unittest.mock import patch

import structlog

from bot import events
from bot.channel.port import MembershipChange
from bot.errors import BotError
from bot.settings import RESUME_WITHIN_S
from compaction.errors import CompactionError
from compaction.model import Seq, Turn, TurnKind, TurnPart
from config.load import load
from rehearsal.roomtone.evenings.channel import WORD_S, TypedLine
from rehearsal.roomtone.evenings.disk import killed_connections_rest
from rehearsal.roomtone.evenings.invariants import check_stored
from rehearsal.roomtone.evenings.models import CALL, ORDER, EveningRecogniser
from rehearsal.roomtone.evenings.plan import Act, Fault, make_plan
from rehearsal.roomtone.evenings.process import EveningProcess
from rehearsal.roomtone.evenings.virtual_time import run_virtually
from rehearsal.roomtone.evenings.world import AFTERMATH_S, GRID_S, GUILD_ID, RuleBrokenError, World
from voice.errors import VoiceError
from voice.screen.notes import ScreenNote, ScreenNoteReason
from voice.screen.port import VisionSource

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from rehearsal.roomtone.evenings.disk import DiskFault
    from rehearsal.roomtone.evenings.plan import Plan, Step
    from rehearsal.roomtone.evenings.world import Line

# Nothing that a bot logs is worse.
_WORST = 50
# What people speak of, so that a question finds what was said before.
TOPICS: Final = ("harbour", "kettle", "violin", "garden")
# Between two lines of one person.
_BREATH_S: Final = 1.6
# How long a rest is; and how long a room may take to be quiet or open once everything is mended.
_REST_S, _WITHIN_S = 45.0, 300.0
# Nobody speaks, and nothing is answered, for so long.
_QUIET_S: Final = 4.0
# What people's wishes may fail with. Anything else is a defect.
_EXPECTED = (BotError, CompactionError, VoiceError)
_DISK: Final[Mapping[Fault, DiskFault]] = {
    Fault.DISK_ERROR: "error",
    Fault.DISK_HANG: "hang",
    Fault.DISK_LOST: "lost",
}
_SETTINGS: Final = {
    "participation.max_calls_per_hour": 0,
    "participation.max_tokens_per_hour": 0,
    "participation.max_spoken_s_per_hour": 0,
}


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
    player = _Player(world)
    try:
        await player.play()
    except RuleBrokenError:
        pass
    except Exception as error:  # noqa: BLE001 - a defect that reaches people ends the evening
        world.breaks(f"{type(error).__name__}: {error}")
    finally:
        await player.close()
    for name in sorted(task.get_name() for task in asyncio.all_tasks() - {asyncio.current_task()}):
        world.breaks(f"the task {name} is left")
    world.model = None
    return world


class _Player:
    """The player of one evening."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._settings = load(overrides=_SETTINGS)
        self._recogniser = EveningRecogniser(world)
        self._started = 0
        self._process = self._new_process()
        # What each person has begun to say last. All that was begun is an errand.
        self._mouths: dict[int, asyncio.Task[None]] = {}
        self._errands: dict[asyncio.Task[None], Coroutine[object, object, object]] = {}
        # Whose last choice may not be stored, whether the last silence may not be, and who is still to be forgotten.
        self._unsure: set[int] = set()
        self._silence_is_unsure = False
        self._to_forget: set[int] = set()

    def _new_process(self) -> EveningProcess:
        self._started += 1
        return EveningProcess(self._world, self._settings, self._recogniser, self._started)

    async def play(self) -> None:
        """Play all steps. Raises `RuleBrokenError` after the first that breaks a rule."""
        await self._process.start()
        await self._remember(self._world.plan.earlier)
        await self._process.rooms.join(self._process.channel)
        for step in self._world.plan.steps:
            await asyncio.sleep(step.after_s)
            self._world.note("step", step, self._process.disk.asked.hexdigest()[:8])
            await self._take(step)
            self._check()
        await self._be_calm()
        await self._process.stop()
        check_stored(self._world)
        self._world.note("over", self._process.disk.asked.hexdigest())

    async def _remember(self, count: int) -> None:
        """Store so many turns of a session that an earlier process has left open."""
        world, stores = self._world, self._process.stores
        opened = await stores.sessions.open(
            guild_id=GUILD_ID, channel_id=self._process.channel.channel_id, resume_within_s=RESUME_WITHIN_S
        )
        store, session_id = stores.turns_of(opened.claim), opened.session.id
        for seq in range(count):
            who = world.present[seq % len(world.present)]
            line = world.new_line(who.id, "said")
            words = [world.new_word(line) for _ in range(3)]
            part, at = (
                TurnPart(str(who.id), who.name, " ".join(("the", TOPICS[seq % len(TOPICS)], *words))),
                world.clock.now() - count + seq,
            )
            await store.append_turn(session_id, Turn(Seq(seq), TurnKind.SPEECH, at, at, (part,)))
            world.turns[world.name_of(session_id), seq] = words
            world.recorded.update(dict.fromkeys(words, (world.name_of(session_id), seq)))

    async def close(self) -> None:
        """End what runs."""
        await self._drop_errands()
        await self._process.kill()

    def _check(self) -> None:
        if self._world.broken:
            raise RuleBrokenError(self._world.broken[0])

    def _acts(self) -> Mapping[Act, Callable[[Step], object]]:
        """Return what each kind of step does. It goes on beside the next ones, or is awaited."""
        begin = self._begin
        return {
            Act.SAY: lambda step: self._speak(step.who, step.words),
            Act.ASK: lambda step: self._speak(step.who, step.words, CALL),
            Act.ORDER: lambda step: self._speak(step.who, step.words, ORDER),
            Act.TYPE: lambda step: begin(self._type(step.who)),
            Act.SHOW: lambda step: begin(self._share(step.who, step.words)),
            Act.UNSHARE: lambda step: begin(self._share(step.who, 0)),
            Act.COME: lambda step: self._move(step.who, joined=True),
            Act.GO: lambda step: self._move(step.who, joined=False),
            Act.OPT_OUT: lambda step: begin(self._opt(step.who, out=True)),
            Act.OPT_IN: lambda step: begin(self._opt(step.who, out=False)),
            Act.AGREE: lambda step: begin(self._agree(step.who, agrees=True)),
            Act.DISAGREE: lambda step: begin(self._agree(step.who, agrees=False)),
            Act.FORGET: lambda step: begin(self._forget(step.who)),
            Act.PRESS: lambda step: self._press(step, do_it=True),
            Act.DECLINE: lambda step: self._press(step, do_it=False),
            Act.SILENCE: lambda step: begin(self._silence(step.who, lifts=False)),
            Act.LET_TALK: lambda step: begin(self._silence(step.who, lifts=True)),
            Act.LEAVE: lambda _: begin(self._process.rooms.leave(GUILD_ID)),
            Act.CALL: lambda _: begin(self._call()),
            Act.BREAK: self._break,
            Act.MEND: lambda step: self._mend([step.fault]),
            Act.DROP: lambda _: self._drop(),
            Act.RESTART: lambda _: self._restart(kills=False),
            Act.KILL: lambda _: self._restart(kills=True),
            Act.CALM: lambda _: self._be_calm(),
            Act.REST: lambda _: asyncio.sleep(_REST_S),
        }

    async def _take(self, step: Step) -> None:
        if asyncio.iscoroutine(begun := self._acts()[step.act](step)):
            await begun

    def _break(self, step: Step) -> None:
        assert step.fault is not None, "a plan says what breaks"
        self._world.begin_fault(step.fault)
        self._process.disk.fault = _DISK.get(step.fault, self._process.disk.fault)
        self._process.channel.set_down(down=self._world.has(Fault.LINE))

    def _drop(self) -> None:
        self._world.excuse_unrecorded()
        self._process.channel.drop()

    async def _restart(self, *, kills: bool) -> None:
        """End the process, in order or at once, and start another."""
        await self._drop_errands()
        if kills:
            self._world.excuse_unrecorded()
            self._world.excuse_unstored()
            await self._process.kill()
        self._mend(list(self._world.faults))
        if not kills:
            await self._process.stop()
        await self._start_again()

    def _mend(self, faults: Sequence[Fault | None]) -> None:
        self._world.end_faults(filter(None, faults))
        if not _DISK.keys().isdisjoint(faults):
            self._process.disk.mend()
        self._process.channel.set_down(down=self._world.has(Fault.LINE))

    async def _start_again(self) -> None:
        """Start another process. It knows what people have chosen, as far as that was stored."""
        self._process = self._new_process()
        await self._process.start()
        found = set(self._process.guild.opted_out)
        if (found ^ self._world.out) - self._unsure:
            self._world.breaks(f"{sorted(found)} have opted out for the new process, and not {sorted(self._world.out)}")
        self._world.out = found
        self._unsure.clear()
        self._world.silenced &= not self._silence_is_unsure

    # -- what people do ------------------------------------------------------------------------------------------

    def _begin(self, errand: Coroutine[object, object, object], *, name: str = "errand") -> asyncio.Task[None]:
        """Begin what somebody wants or says. That it fails while something is broken is expected."""
        task = asyncio.create_task(self._tried(errand), name=name)
        self._errands[task] = errand
        return task

    async def _tried(self, errand: Coroutine[object, object, object]) -> None:
        try:
            await errand
        except _EXPECTED as error:
            self._world.note("refused", type(error).__name__)
        except Exception as error:  # noqa: BLE001 - a defect that reaches people
            self._world.breaks(f"{getattr(errand, '__qualname__', '')} raised {type(error).__name__}: {error}")

    async def _drop_errands(self) -> None:
        for task in self._errands:
            task.cancel()
        if self._errands:
            await asyncio.wait(self._errands)
        for errand in self._errands.values():
            # It may not have begun.
            errand.close()
        self._errands.clear()

    def _speak(self, person: int, count: int, prefix: str = "") -> Line:
        line = self._world.new_line(person, "said")
        words = self._utter(line, count, prefix, self._mouths.get(person))
        self._mouths[person] = self._begin(words, name=f"mouth-{person}")
        return line

    async def _utter(self, line: Line, count: int, prefix: str, before: asyncio.Task[None] | None) -> None:
        """Say a line, word by word, after the one that the person says now; as far as they are there."""
        world = self._world
        if before is not None and not before.done():
            await asyncio.wait({before})
            await asyncio.sleep(_BREATH_S)
        for each in range(count):
            if world.people[line.person] not in world.present:
                return
            word = world.new_word(line)
            number = len(world.spoken_words)
            lead = f"{prefix} the {TOPICS[number % len(TOPICS)]}".strip()
            last = each == count - 1 and prefix
            self._recogniser.texts[number] = f"{lead} {word}" if each == 0 else word
            if last:
                self._recogniser.texts[number] += "?"
            self._process.channel.utter(line, number=number)
            await asyncio.sleep(WORD_S)
        self._process.channel.fall_silent(line.person)

    async def _type(self, person: int) -> None:
        world = self._world
        line = world.new_line(person, "typed")
        line.is_excused |= not self._process.is_open() or not world.hears(person)
        message = TypedLine(world, world.people[person], f"Typed {world.new_word(line)}?")
        line.is_excused |= await self._process.rooms.take_typed(GUILD_ID, message) is not None

    async def _share(self, person: int, count: int) -> None:
        """Show so many new things on a screen; none: end all shares."""
        world, process = self._world, self._process
        if not process.is_open():
            return
        recorder, sharer = process.recorder(person)
        if not count:
            await recorder.retire_notes()
        for _ in range(count):
            line = world.new_line(person, "shown")
            line.is_excused |= not world.hears(person)
            what = f"{world.new_word(line)} {world.new_word(line)}"
            seen = ScreenNote(world.clock.now(), what, ScreenNoteReason.TEXT, VisionSource.MODEL, "")
            await recorder.take_note(sharer, seen)
            if not process.is_open():
                # A share ends before its session.
                world.may_be_lost.update(line.words)

    def _move(self, person: int, *, joined: bool) -> None:
        world, channel, who = self._world, self._process.channel, self._world.people[person]
        if joined:
            world.present.append(who)
        else:
            world.present.remove(who)
            channel.fall_silent(person, leaves=True)
        self._process.rooms.on_membership(GUILD_ID, channel.channel_id, MembershipChange(who, joined=joined))

    async def _opt(self, person: int, *, out: bool) -> None:
        world = self._world
        self._unsure.add(person)
        if out != (person in world.out):
            world.agreed.discard(person)
            (world.out.add if out else world.out.discard)(person)
            if out:
                world.withdraw(person)
        await self._process.participation.set_opt_out(GUILD_ID, person, out=out)
        self._unsure.discard(person)

    async def _agree(self, person: int, *, agrees: bool) -> None:
        world = self._world
        if agrees and person not in world.out:
            world.agreed.add(person)
        elif not agrees and person in world.agreed:
            world.agreed.discard(person)
            world.withdraw(person)
        await self._process.participation.set_agreed(GUILD_ID, person, agrees=agrees)

    async def _forget(self, person: int) -> None:
        """Have a person forgotten. What fails is tried again when everything works."""
        world, since = self._world, self._world.clock.monotonic()
        self._to_forget.add(person)
        world.withdraw(person)
        await self._process.personal.forget(str(person))
        self._to_forget.discard(person)
        for word, line in world.line_of.items():
            if line.person == person and world.said_at[word] < since:
                world.forgotten.add(word)
            elif line.person == person:
                # What is said meanwhile may be forgotten too.
                world.may_be_lost.add(word)
                line.is_excused = True
        world.note("forgotten", person)

    def _press(self, step: Step, *, do_it: bool) -> None:
        """Press a button of the newest card; mostly who may does."""
        world, calls = self._world, [each for each in self._process.channel.calls if not each.is_over]
        if not calls:
            return
        call, names = calls[-1], {each.name: each for each in world.people.values()}
        presser = names[call.asker] if step.words % 3 else world.people[step.who]
        if call.press(presser, do_it) is None:
            world.note("pressed", presser.name, do_it)
            call.is_pressed = do_it
            if presser.name != call.asker:
                world.breaks(f"{presser.name} has pressed for {call.asker}")

    async def _silence(self, person: int, *, lifts: bool) -> None:
        world, participation = self._world, self._process.participation
        if lifts:
            world.silenced = False
            await participation.lift_silence(GUILD_ID, by=person, manager=True)
        elif self._process.is_open():
            world.silenced = self._silence_is_unsure = True
            await participation.silence_for_now(GUILD_ID, by=person)
            self._silence_is_unsure = False

    async def _call(self) -> None:
        if self._process.rooms.current_channel(GUILD_ID) is None:
            await self._process.rooms.join(self._process.channel)

    # -- calm ----------------------------------------------------------------------------------------------------

    async def _be_calm(self) -> None:
        """Mend everything, wait until it has healed, and ask one question; then look at the database."""
        world, process = self._world, self._process
        self._mend(list(world.faults))
        await self._until_done()
        await asyncio.sleep(AFTERMATH_S)
        await self._until_open()
        for person in sorted(self._to_forget):
            await self._forget(person)
        asker = world.present[0].id
        await self._opt(asker, out=False)
        if world.plan.asks:
            await self._agree(asker, agrees=True)
        await self._silence(asker, lifts=True)
        await self._until_quiet()
        self._check()
        line = self._speak(asker, 3, CALL)
        await self._until_quiet()
        self._check_answer(line)
        if world.timeline is not None:
            await world.timeline.settle()
        # What was forgotten goes from what is posted.
        await asyncio.sleep(_QUIET_S)
        check_stored(world)
        self._check()
        assert self._process is process, "nothing else happens meanwhile"

    async def _until_done(self) -> None:
        """Wait until everything that people wanted is done, or was refused."""
        if self._errands:
            _, left = await asyncio.wait(self._errands, timeout=_WITHIN_S)
            for task in left:
                self._world.breaks(f"{task.get_name()} never ends")
        self._errands.clear()

    async def _until_open(self) -> None:
        """Call the bot back if it has gone, and wait until it is there."""
        tries = 0
        while not self._process.is_open():
            tries += 1
            if tries > _WITHIN_S / _QUIET_S:
                self._world.breaks("the bot does not come back")
                self._check()
            await self._tried(self._call())
            await asyncio.sleep(_QUIET_S)

    async def _until_quiet(self) -> None:
        """Wait until nobody has spoken and nothing was answered for some seconds."""
        begun_at = busy_at = self._world.clock.monotonic()
        while (now := self._world.clock.monotonic()) - busy_at < _QUIET_S:
            await asyncio.sleep(GRID_S)
            if self._process.is_busy() or any(not mouth.done() for mouth in self._mouths.values()):
                busy_at = self._world.clock.monotonic()
            if now - begun_at > _WITHIN_S:
                self._world.breaks("the room never becomes quiet")
                return

    def _check_answer(self, line: Line) -> None:
        """Check that a question was answered once, aloud."""
        session, seq = self._world.recorded.get(line.words[0], ("", -1))
        outcomes = self._world.replies[session, int(seq)]
        if outcomes != [events.ReplyOutcome.SPOKEN]:
            self._world.breaks(f"the calm question {line.words[0]} got {[each.value for each in outcomes]}")
