"""What the people of a simulated evening do, and what they have begun and not ended."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from math import inf
from typing import Final

from bot.background_task import cancel_all
from bot.channel.port import MembershipChange
from bot.errors import BotError
from bot.participation.guild_state import NotNowError
from bot.store.speakers import StoredSpeaker
from compaction.errors import CompactionError
from rehearsal.roomtone.evenings.channel import WORD_S, TypedLine
from rehearsal.roomtone.evenings.models import EveningRecogniser
from rehearsal.roomtone.evenings.plan import Fault, Step
from rehearsal.roomtone.evenings.process import EveningProcess
from rehearsal.roomtone.evenings.world import GUILD_ID, Line, Withdrawal, World
from voice.errors import VoiceError
from voice.screen.notes import ScreenNote, ScreenNoteReason
from voice.screen.port import VisionSource

# What people speak of, so that a question finds what was said before.
TOPICS: Final = ("harbour", "kettle", "violin", "garden")
# Between two lines of one person.
_BREATH_S: Final = 1.6
# How long what people want may take, and a room to be quiet or open, once everything is mended.
WITHIN_S: Final = 300.0
# How long a room may take to learn of what another process has forgotten, if its database works.
_LEARNED_S: Final = 20.0
# What people's wishes may fail with. Anything else is a defect.
_EXPECTED = (BotError, CompactionError, VoiceError)


class EveningCrowd:
    """The people of one evening. `process`: the one that hears them now. `to_forget`: who is still to be forgotten."""

    def __init__(self, world: World, process: EveningProcess, recogniser: EveningRecogniser) -> None:
        self.process = process
        self.to_forget: set[int] = set()
        self._world = world
        self._recogniser = recogniser
        # What each person has begun to say last. All that was begun is an errand.
        self._mouths: dict[int, tuple[Line, asyncio.Task[None]]] = {}
        self._errands: dict[asyncio.Task[None], Coroutine[object, object, object]] = {}
        # Whose last choice may not be stored, and whether the last silence may not be.
        self._unsure: set[int] = set()
        self._silence_is_unsure = False

    @property
    def is_speaking(self) -> bool:
        """Return whether somebody has not said all that they want to say."""
        return any(not saying.done() for _, saying in self._mouths.values())

    def meet(self, process: EveningProcess) -> None:
        """Meet another process. It knows what people have chosen, as far as that was stored."""
        self.process, world = process, self._world
        found = set(process.guild.opted_out)
        if (found ^ world.out) - self._unsure:
            world.breaks(f"{sorted(found)} have opted out for the new process, and not {sorted(world.out)}")
        world.out = found
        self._unsure.clear()
        world.silenced &= not self._silence_is_unsure
        self._silence_is_unsure = False

    def begin(self, errand: Coroutine[object, object, object], *, name: str = "errand") -> asyncio.Task[None]:
        """Begin what somebody wants or says. That it fails while something is broken is expected."""
        task = asyncio.create_task(self.tried(errand), name=name)
        self._errands[task] = errand
        return task

    async def tried(self, errand: Coroutine[object, object, object]) -> None:
        try:
            await errand
        except _EXPECTED as error:
            self._world.note("refused", type(error).__name__)
        except Exception as error:  # noqa: BLE001 - a defect that reaches people
            self._world.breaks(f"{getattr(errand, '__qualname__', '')} raised {type(error).__name__}: {error}")

    async def drop_errands(self) -> None:
        await cancel_all(self._errands)
        for errand in self._errands.values():
            # It may not have begun.
            errand.close()
        self._errands.clear()

    async def until_done(self) -> None:
        """Wait until everything that people wanted is done, or was refused."""
        if self._errands:
            _, left = await asyncio.wait(self._errands, timeout=WITHIN_S)
            for task in left:
                self._world.breaks(f"{task.get_name()} never ends")
        self._errands.clear()

    def speak(self, person: int, count: int, prefix: str = "") -> Line:
        line = self._world.new_line(person, "said")
        words = self._utter(line, count, prefix, self._mouths.get(person))
        self._mouths[person] = line, self.begin(words, name=f"mouth-{person}")
        return line

    async def _utter(self, line: Line, count: int, prefix: str, before: tuple[Line, asyncio.Task[None]] | None) -> None:
        """Say a line, word by word, after the one that the person says now; as far as they are there."""
        world = self._world
        if before is not None:
            earlier, saying = before
            if not saying.done():
                await asyncio.wait({saying})
                await asyncio.sleep(_BREATH_S)
            if earlier.words and world.clock.monotonic() - world.said_at[earlier.words[-1]] < WORD_S + _BREATH_S:
                # Both may be one utterance.
                line.is_excused |= earlier.is_excused
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
            self.process.channel.utter(line, number=number)
            await asyncio.sleep(WORD_S)
        self.process.channel.fall_silent(line.person)

    async def type(self, person: int) -> None:
        world = self._world
        line = world.new_line(person, "typed")
        line.is_excused |= not self.process.is_open() or not world.hears(person)
        message = TypedLine(world, world.people[person], f"Typed {world.new_word(line)}?")
        room = self.process.rooms.open(GUILD_ID)
        line.is_excused |= room is None or await room.take_typed(message) is not None

    async def share(self, person: int, count: int) -> None:
        """Show so many new things on a screen; none: end all shares."""
        world, process = self._world, self.process
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

    def move(self, person: int, *, joined: bool) -> None:
        world, channel, who = self._world, self.process.channel, self._world.people[person]
        if joined:
            world.present.append(who)
        else:
            world.present.remove(who)
            channel.fall_silent(person, leaves=True)
        self.process.rooms.on_membership(GUILD_ID, channel.channel_id, MembershipChange(who, joined=joined))

    async def opt(self, person: int, *, out: bool) -> None:
        world = self._world
        self._unsure.add(person)
        if out != (person in world.out):
            world.agreed.discard(person)
            (world.out.add if out else world.out.discard)(person)
            if out:
                world.withdraw(person)
        await self.process.participation.set_opt_out(GUILD_ID, person, out=out)
        self._unsure.discard(person)

    async def agree(self, person: int, *, agrees: bool) -> None:
        world = self._world
        if agrees and person not in world.out:
            world.agreed.add(person)
        elif not agrees and person in world.agreed:
            world.agreed.discard(person)
            world.withdraw(person)
        await self.process.participation.set_agreed(GUILD_ID, person, agrees=agrees)

    async def forget(self, person: int, *, elsewhere: bool = False) -> None:
        """Have a person forgotten. What fails is tried again when everything works. `elsewhere`: as another process
        does it, of which the room learns from the database.
        """
        world, since = self._world, self._world.clock.monotonic()
        self.to_forget.add(person)
        if elsewhere:
            # What the person has said may be gone from now on, and need not be.
            world.withdrawn.setdefault(person, Withdrawal(-inf, "", 0))
            for line in world.lines:
                line.is_excused |= line.person == person
            await self.process.forgetter.forget(StoredSpeaker(str(person), (), 0.0, 0, ()))
            await asyncio.sleep(_LEARNED_S)
            while world.has(*Fault, within_s=_LEARNED_S):  # noqa: ASYNC110 - in virtual time
                await asyncio.sleep(1.0)
        else:
            world.withdraw(person)
            await self.process.personal.forget(str(person))
        self.to_forget.discard(person)
        for word, line in world.line_of.items():
            if line.person == person and world.said_at[word] < since:
                world.forgotten.add(word)
            elif line.person == person:
                # What is said meanwhile may be forgotten too.
                world.may_be_lost.add(word)
                line.is_excused = True
        world.note("forgotten", person)

    def press(self, step: Step, *, do_it: bool) -> None:
        """Press a button of the newest card; mostly who may does."""
        world, calls = self._world, [each for each in self.process.channel.calls if not each.is_over]
        if not calls:
            return
        call, names = calls[-1], {each.name: each for each in world.people.values()}
        presser = names[call.asker] if step.words % 3 else world.people[step.who]
        if call.press(presser, do_it) is None:
            world.note("pressed", presser.name, do_it)
            call.is_pressed = do_it
            if presser.name != call.asker:
                world.breaks(f"{presser.name} has pressed for {call.asker}")

    async def silence(self, person: int, *, lifts: bool) -> None:
        world, participation = self._world, self.process.participation
        if lifts:
            world.silenced = False
            await participation.lift_silence(GUILD_ID, by=person, manager=True)
        elif self.process.is_open():
            before = world.silenced, self._silence_is_unsure
            world.silenced = self._silence_is_unsure = True
            try:
                await participation.silence_for_now(GUILD_ID, by=person)
            except NotNowError:
                world.silenced, self._silence_is_unsure = before
                raise
            self._silence_is_unsure = False

    async def call(self) -> None:
        if self.process.rooms.current_channel(GUILD_ID) is None:
            await self.process.rooms.join(self.process.channel)
