"""One room: a voice session in one channel, from the bot's entrance to its leaving.

It opens the session's memory, enters the channel, keeps the tasks of the conversation alive and ends all of it in
order; what is said and answered is `bot.room.conversation`. The session outlives a crash: the room that starts next
in the channel goes on with it.
"""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from typing import TYPE_CHECKING

import structlog

from bot import events
from bot.memory.recall import RecallScope
from bot.room.conversation import Conversation
from bot.room.tasks import lasting
from compaction.errors import StoreError
from compaction.folding.events import FoldFailed, FoldLanded
from voice.errors import LinkError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from bot.channel.port import Link, Moved, Place
    from bot.memory.upkeep import MemoryUpkeep
    from bot.participation.standing import GuildParticipation
    from bot.room.services import RoomServices
    from bot.screen.room import RoomScreens
    from bot.store.sessions import OpenedSession
    from compaction.folding.events import CompactionEvent
    from compaction.model import Note, SessionId, Turn
    from compaction.session import SessionMemory

log = structlog.get_logger()

# How often the room looks whether it is alone, and tells its packet counters.
LOOK_AROUND_S = 5.0
# An ending room's time for what people said of themselves to be kept.
KEEPING_S = 4.0


class Room:
    """A voice session in `place`. `run` is its life; made anew for each start.

    *Ownership*: the supervisor runs it in a task. *Cancellation*: what is stored stays stored, and the session
    stays open for the next room.
    """

    def __init__(self, place: Place, means: RoomServices) -> None:
        self._place = place
        self._means = means
        self._clock = means.clock
        self._observe = means.observe
        self._opened = asyncio.Event()
        self._closing: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._moves: asyncio.Queue[Moved] = asyncio.Queue()
        self._opened_at = self._clock.monotonic()
        self._memory: SessionMemory | None = None
        self._keeper: MemoryUpkeep | None = None
        self._conversation: Conversation | None = None

    # -- what the supervisor asks ---------------------------------------------------------------------------

    @property
    def opened(self) -> asyncio.Event:
        """Set when the bot is in the channel and hears it."""
        return self._opened

    async def run(self) -> str:
        """Live until closed; return the reason. Raises `LinkError`, `StoreError` or whatever broke."""
        opened = await self._means.sessions.open(
            guild_id=self._place.guild_id,
            channel_id=self._place.channel_id,
            resume_within_s=self._means.room.resume_within_s,
        )
        session_id = opened.session.id
        with structlog.contextvars.bound_contextvars(session_id=session_id, guild_id=self._place.guild_id):
            async with self._means.open_memory(session_id, self._place.guild_id, self._on_compaction) as memory:
                self._memory = memory
                self._keeper = self._means.keeping(session_id, self._place.guild_id, memory)
                standing = await self._means.participation.standing(self._place.guild_id)
                with self._watching(session_id, memory) as screens:
                    conversation = self._conversation = self._new_conversation(session_id, memory, standing)
                    reason = "crashed"
                    try:
                        reason = await self._live(opened, conversation, screens)
                        await self._end_session(memory, reason)
                    finally:
                        self._observe(events.RoomClosed(session_id, reason, self._clock.monotonic()))
                return reason

    def close(self, reason: str) -> None:
        """Ask the room to end in order; `run` returns `reason`."""
        if not self._closing.done():
            self._closing.set_result(reason)

    def moved(self, moved: Moved) -> None:
        """Somebody came or went; noted as a turn of its own."""
        self._moves.put_nowait(moved)

    def status(self) -> str:
        """Return how the room is, in plain sentences."""
        if self._memory is None or self._conversation is None or not self._opened.is_set():
            return f"I am coming to {self._place.name}."
        minutes = round((self._clock.monotonic() - self._opened_at) / 60)
        people = sum(not person.is_bot for person in self._place.company())
        total = self._memory.total_turns
        remembered = f"I remember {_count(total, 'turn', 'turns')} of this session"
        if self._memory.cursor:
            remembered += f", the first {self._memory.cursor} of them as a summary"
        told = (
            f"I have been in {self._place.name} for {_count(minutes, 'minute', 'minutes')}, with "
            f"{_count(people, 'person', 'people')}. {remembered}. {_left_out(self._conversation)}"
            f"{self._conversation.participation()} I answer with {self._conversation.mind}. {self._means.health()}"
        )
        return told.rstrip()

    # -- life -----------------------------------------------------------------------------------------------

    def _new_conversation(
        self, session_id: SessionId, memory: SessionMemory, standing: GuildParticipation
    ) -> Conversation:
        here = RecallScope(session_id, self._place.guild_id, self._place.channel_id)
        return Conversation(
            self._place,
            self._means,
            session_id=session_id,
            standing=standing,
            memory=memory,
            keeper=self._keeper,
            quoting=self._means.quoting(here),
            toolbox=self._means.toolbox(here, self._place),
            report=self._report,
        )

    def _watching(self, session_id: SessionId, memory: SessionMemory) -> AbstractContextManager[RoomScreens | None]:
        """Return what lets people share screens here while it is entered."""
        if self._means.screens is None:
            return nullcontext()
        return self._means.screens.room_for(session_id, self._place, memory=memory, watcher=self)

    async def _live(self, opened: OpenedSession, conversation: Conversation, screens: RoomScreens | None) -> str:
        """Be in the channel until asked to leave; return why."""
        connection = self._place.connect(conversation.playback, conversation.take, excludes=conversation.excludes)
        async with connection as link:
            async with asyncio.TaskGroup() as tasks:
                running = [
                    tasks.create_task(lasting(conversation.run()), name="conversation"),
                    tasks.create_task(lasting(self._note_moves(conversation)), name="membership"),
                    tasks.create_task(lasting(self._look_around(link)), name="look-around"),
                    tasks.create_task(lasting(self._watch(link)), name="link"),
                ]
                if self._keeper is not None:
                    running.append(tasks.create_task(lasting(self._keeper.run()), name="keeper"))
                if screens is not None:
                    running.append(tasks.create_task(lasting(screens.run()), name="screens"))
                await self._enter(opened)
                reason = await self._closing
                await conversation.finish()
                if screens is not None:
                    await screens.finish()
                for task in running:
                    task.cancel()
            self._tell_link(link)
        return reason

    async def _enter(self, opened: OpenedSession) -> None:
        self._opened_at = self._clock.monotonic()
        log.info("room_opened", channel_id=self._place.channel_id, resumed=opened.resumed)
        self._opened.set()
        self._observe(
            events.RoomOpened(
                opened.session.id, self._place.guild_id, self._place.channel_id, opened.resumed, self._opened_at
            )
        )
        if self._keeper is not None:
            self._keeper.came(str(person.id) for person in self._place.company())
        if self._means.room.notice:
            await self._place.write(self._means.room.notice)

    async def _end_session(self, memory: SessionMemory, reason: str) -> None:
        if self._keeper is not None:
            await self._keeper.finish(within_s=KEEPING_S)
        try:
            await memory.end()
        except StoreError as error:
            # Turns are stored already; the next process ends the session or goes on with it.
            self._report("session", str(error))
            return
        log.info("session_ended", reason=reason, total_turns=memory.total_turns, cursor=memory.cursor)

    async def _note_moves(self, conversation: Conversation) -> None:
        while True:
            await conversation.moved(await self._moves.get())

    async def _look_around(self, link: Link) -> None:
        """Leave when nobody is there for long, and tell the packet counters now and then."""
        alone_since: float | None = None
        while True:
            await self._clock.sleep(LOOK_AROUND_S)
            self._tell_link(link)
            now = self._clock.monotonic()
            if any(not person.is_bot for person in self._place.company()):
                alone_since = None
                continue
            alone_since = now if alone_since is None else alone_since
            if now - alone_since >= self._means.room.leave_when_empty_s:
                self.close("empty")

    async def _watch(self, link: Link) -> None:
        """End with the connection: in order when somebody took the bot out of the channel, else by `LinkError`."""
        reason = await link.lost()
        if link.removed:
            self.close("expelled")
            return
        raise LinkError(reason)

    # -- what is told ---------------------------------------------------------------------------------------

    def excludes(self, user_id: int) -> bool:
        """Return whether nothing of a person is to be heard or seen."""
        return self._conversation is not None and self._conversation.excludes(user_id)

    def noted(self, note: Note) -> None:
        """Hand on what was seen on a shared screen."""
        if self._conversation is not None:
            self._conversation.noted(note)

    def recapped(self, turn: Turn) -> None:
        """Hand on the recap of a share that is over."""
        if self._conversation is not None:
            self._conversation.recapped(turn)

    def _tell_link(self, link: Link) -> None:
        self._observe(events.LinkChanged(link.state, link.counters, self._clock.monotonic()))

    def _on_compaction(self, event: CompactionEvent) -> None:
        now = self._clock.monotonic()
        match event:
            case FoldLanded():
                if self._keeper is not None:
                    self._keeper.landed()
                if self._conversation is not None:
                    self._conversation.landed()
                self._observe(
                    events.CompactionLanded(
                        old_cursor=event.old_cursor,
                        new_cursor=event.new_cursor,
                        covered_through_turn=event.covered_through_turn,
                        summary=event.summary,
                        latency_ms=event.latency_ms,
                        degraded=event.degraded,
                        at=now,
                    )
                )
            case FoldFailed():
                self._observe(events.CompactionFailed(event.cursor, event.error, now))
            case _:
                pass

    def _report(self, where: str, sentence: str) -> None:
        """Tell a trouble to the log and to whoever watches."""
        log.error("room_trouble", where=where, problem=sentence)
        self._observe(events.Problem(where, sentence, self._clock.monotonic()))


def _left_out(conversation: Conversation) -> str:
    """Return what was heard and is no turn, as a sentence; empty if that is nothing."""
    dropped = conversation.dropped
    if not dropped:
        return ""
    reasons = ", ".join(f"{number} {reason.replace('_', ' ')}" for reason, number in dropped.most_common())
    return f"I left out {_count(dropped.total(), 'sound', 'sounds')} ({reasons}). "


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"
