"""Plays the plan of a simulated evening: one step after the other, until a rule is broken or it is over."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final

from bot import events
from bot.settings import RESUME_WITHIN_S
from compaction.model import Seq, Turn, TurnKind, TurnPart
from config.load import load
from rehearsal.fault_plan import Faults, FaultStep
from rehearsal.roomtone.evenings.crowd import TOPICS, WITHIN_S, EveningCrowd
from rehearsal.roomtone.evenings.disk import DiskFault
from rehearsal.roomtone.evenings.invariants import check_stored
from rehearsal.roomtone.evenings.models import CALL, ORDER, EveningRecogniser
from rehearsal.roomtone.evenings.plan import Act, Fault, Step
from rehearsal.roomtone.evenings.process import EveningProcess
from rehearsal.roomtone.evenings.world import AFTERMATH_S, GRID_S, GUILD_ID, Line, RuleBrokenError, World

_REST_S: Final = 45.0
# Nobody speaks, and nothing is answered, for so long.
_QUIET_S: Final = 4.0
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


class EveningPlayer:
    """The player of one evening."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._settings = load(overrides=_SETTINGS)
        self._recogniser = EveningRecogniser(world)
        self._started = 0
        self._process = self._new_process()
        self._crowd = EveningCrowd(world, self._process, self._recogniser)
        self._faults = Faults(self._broken)

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
            await (self._faults.carry_out(step) if isinstance(step, FaultStep) else self._take(step))
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
        await self._crowd.drop_errands()
        await self._process.kill()
        await self._faults.mend_all()

    def _check(self) -> None:
        if self._world.broken:
            raise RuleBrokenError(self._world.broken[0])

    def _acts(self) -> Mapping[Act, Callable[[Step], object]]:
        """Return what each kind of step does. It goes on beside the next ones, or is awaited."""
        crowd, begin = self._crowd, self._crowd.begin
        return {
            Act.SAY: lambda step: crowd.speak(step.who, step.words),
            Act.ASK: lambda step: crowd.speak(step.who, step.words, CALL),
            Act.ORDER: lambda step: crowd.speak(step.who, step.words, ORDER),
            Act.TYPE: lambda step: begin(crowd.type(step.who)),
            Act.SHOW: lambda step: begin(crowd.share(step.who, step.words)),
            Act.UNSHARE: lambda step: begin(crowd.share(step.who, 0)),
            Act.COME: lambda step: crowd.move(step.who, joined=True),
            Act.GO: lambda step: crowd.move(step.who, joined=False),
            Act.OPT_OUT: lambda step: begin(crowd.opt(step.who, out=True)),
            Act.OPT_IN: lambda step: begin(crowd.opt(step.who, out=False)),
            Act.AGREE: lambda step: begin(crowd.agree(step.who, agrees=True)),
            Act.DISAGREE: lambda step: begin(crowd.agree(step.who, agrees=False)),
            Act.FORGET: lambda step: begin(crowd.forget(step.who, elsewhere=step.words % 2 == 0)),
            Act.PRESS: lambda step: crowd.press(step, do_it=True),
            Act.DECLINE: lambda step: crowd.press(step, do_it=False),
            Act.SILENCE: lambda step: begin(crowd.silence(step.who, lifts=False)),
            Act.LET_TALK: lambda step: begin(crowd.silence(step.who, lifts=True)),
            Act.LEAVE: lambda _: begin(self._process.rooms.leave(GUILD_ID)),
            Act.CALL: lambda _: begin(crowd.call()),
            Act.DROP: lambda _: self._drop(),
            Act.RESTART: lambda _: self._restart(kills=False),
            Act.KILL: lambda _: self._restart(kills=True),
            Act.CALM: lambda _: self._be_calm(),
            Act.REST: lambda _: asyncio.sleep(_REST_S),
        }

    async def _take(self, step: Step) -> None:
        if asyncio.iscoroutine(begun := self._acts()[step.act](step)):
            await begun

    @asynccontextmanager
    async def _broken(self, fault: Fault) -> AsyncIterator[None]:
        """Let something fail. It is mended in the process that runs then."""
        world = self._world
        world.begin_fault(fault)
        self._process.disk.fault = _DISK.get(fault, self._process.disk.fault)
        self._process.channel.set_down(down=world.has(Fault.LINE))
        yield
        world.end_fault(fault)
        if fault in _DISK:
            self._process.disk.mend()
        self._process.channel.set_down(down=world.has(Fault.LINE))

    def _drop(self) -> None:
        self._world.excuse_unrecorded()
        self._process.channel.drop()

    async def _restart(self, *, kills: bool) -> None:
        """End the process, in order or at once, and start another."""
        await self._crowd.drop_errands()
        if kills:
            self._world.excuse_unrecorded()
            self._world.excuse_unstored()
            await self._process.kill()
        await self._faults.mend_all()
        if not kills:
            await self._process.stop()
        self._process = self._new_process()
        await self._process.start()
        self._crowd.meet(self._process)

    # -- calm ----------------------------------------------------------------------------------------------------

    async def _be_calm(self) -> None:
        """Mend everything, wait until it has healed, and ask one question; then look at the database."""
        world, process = self._world, self._process
        await self._faults.mend_all()
        await self._crowd.until_done()
        await asyncio.sleep(AFTERMATH_S)
        await self._until_open()
        for person in sorted(self._crowd.to_forget):
            await self._crowd.forget(person)
        asker = world.present[0].id
        await self._crowd.opt(asker, out=False)
        if world.plan.asks:
            await self._crowd.agree(asker, agrees=True)
        await self._crowd.silence(asker, lifts=True)
        await self._until_quiet()
        self._check()
        line = self._crowd.speak(asker, 3, CALL)
        await self._until_quiet()
        self._check_answer(line)
        if world.timeline is not None:
            await world.timeline.settle()
        # What was forgotten goes from what is posted.
        await asyncio.sleep(_QUIET_S)
        check_stored(world)
        self._check()
        assert self._process is process, "nothing else happens meanwhile"

    async def _until_open(self) -> None:
        """Call the bot back if it has gone, and wait until it is there."""
        tries = 0
        while not self._process.is_open():
            tries += 1
            if tries > WITHIN_S / _QUIET_S:
                self._world.breaks("the bot does not come back")
                self._check()
            await self._crowd.tried(self._crowd.call())
            await asyncio.sleep(_QUIET_S)

    async def _until_quiet(self) -> None:
        """Wait until nobody has spoken and nothing was answered for some seconds."""
        begun_at = busy_at = self._world.clock.monotonic()
        while (now := self._world.clock.monotonic()) - busy_at < _QUIET_S:
            await asyncio.sleep(GRID_S)
            if self._process.is_busy() or self._crowd.is_speaking:
                busy_at = self._world.clock.monotonic()
            if now - begun_at > WITHIN_S:
                self._world.breaks("the room never becomes quiet")
                return

    def _check_answer(self, line: Line) -> None:
        """Check that a question was answered once, aloud."""
        session, seq = self._world.recorded.get(line.words[0], ("", -1))
        outcomes = self._world.replies[session, int(seq)]
        if outcomes != [events.ReplyOutcome.SPOKEN]:
            self._world.breaks(f"the calm question {line.words[0]} got {[each.value for each in outcomes]}")
