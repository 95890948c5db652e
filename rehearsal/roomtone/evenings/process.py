"""One process of the bot in a simulated evening: the real rooms and stores, from its start to its end or its death."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC
from functools import partial
from random import Random
from weakref import ref

from bot import events
from bot.background_task import background_task
from bot.brain.tools.toolbox import TalkTools, Toolbox
from bot.channel.port import RoomChannel
from bot.conversation.services import RoomServices, SpeechModels
from bot.logs.log_file import log_path
from bot.memory.digests import Digests
from bot.memory.personal_data import PersonalData, PersonForgetter
from bot.memory.personal_recall import MemoryReaders, PersonalRecall
from bot.memory.recall import RecallScope
from bot.memory.session_views import SessionViews
from bot.participation.guild_state import GuildState, GuildStates
from bot.posts.renewal import PostedRenewal
from bot.room.room import Room
from bot.room.rooms import Rooms
from bot.screen.sharer import Sharer, ShareRecorder
from bot.server_settings import ListenRequest
from bot.settings import RESUME_WITHIN_S
from bot.store.history import SessionHistory
from bot.wiring.process import Stores
from bot.wiring.rooms import RoomForgetting, end_open_session
from compaction.summary.port import Summariser
from config.schema import Settings
from rehearsal.roomtone.evenings.channel import EveningChannel
from rehearsal.roomtone.evenings.disk import Disk
from rehearsal.roomtone.evenings.models import (
    EveningEndpoint,
    EveningRecogniser,
    EveningSummariser,
    EveningVoice,
    make_tool,
)
from rehearsal.roomtone.evenings.world import GUILD_ID, World
from rehearsal.roomtone.written.channel import LoudnessDetector
from rehearsal.roomtone.written.scripted_model import WrittenModel
from rehearsal.roomtone.written.services import WrittenServices, open_written_services


class EveningProcess:
    """One process. `number`: counts those of the evening. `recogniser`: knows all words of the evening.

    *Ownership*: the player calls `start`, and then `stop` or `kill`.
    """

    def __init__(self, world: World, settings: Settings, recogniser: EveningRecogniser, number: int) -> None:
        self._world, self._settings = world, settings
        self._recogniser = recogniser
        self.disk = Disk(Random(f"{world.plan.seed} {number}"))  # noqa: S311 - no secret
        self.channel = EveningChannel(world)
        self._number = number
        self._ready = asyncio.Event()
        self._stopped = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._session: Room | None = None
        self._sharers: dict[int, Sharer] = {}
        # All of them are there once it is ready.
        self.rooms: Rooms
        self.stores: Stores
        self.participation: GuildStates
        self.guild: GuildState
        self.forgetter: PersonForgetter
        self.personal: PersonalData

    async def start(self) -> None:
        """Start the process, and let it come back to a session that was interrupted."""
        self._task = asyncio.create_task(self._run(), name=f"process-{self._number}")
        ready = asyncio.create_task(self._ready.wait(), name="process-ready")
        await asyncio.wait({self._task, ready}, return_when=asyncio.FIRST_COMPLETED)
        ready.cancel()
        if self._task.done():
            self._task.result()
        for _ in await self.stores.sessions.unfinished(resume_within_s=RESUME_WITHIN_S):
            await self.rooms.join(self.channel)

    async def stop(self) -> None:
        """End the process in order."""
        self._stopped.set()
        assert self._task is not None, "it was started"
        await self._task
        if count := self.disk.open_connections:
            self._world.breaks(f"{count} connections to the database are left open")
        self.disk.kill()

    async def kill(self) -> None:
        """End the process at once: nothing that it does from now on has any effect."""
        self._world.is_halted = True
        try:
            self.disk.kill()
            if self._ready.is_set():
                await self.rooms.abandon()
            self._stopped.set()
            if self._task is not None:
                await asyncio.wait({self._task})
        finally:
            self._world.model = None
            self._world.is_halted = False

    def is_open(self) -> bool:
        """Return whether the bot is in the channel and hears people."""
        return self.rooms.current_channel(GUILD_ID) is not None and self._session is not None and self._is_live

    @property
    def _is_live(self) -> bool:
        return self._session is not None and self._session.opened.is_set() and self._session.ending is None

    def is_busy(self) -> bool:
        """Return whether somebody speaks in the room, or the bot answers."""
        return self._session is not None and self._session.is_busy()

    # -- the process ---------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        world, clock = self._world, self._world.clock
        model = self._world.model = WrittenModel(EveningEndpoint(world), EveningSummariser(world))
        with self.disk.mounted():
            async with AsyncExitStack() as stack:
                written = await stack.enter_async_context(
                    open_written_services(
                        self._settings,
                        self._recogniser,
                        clock=clock,
                        observe=self._see,
                        data_dir=world.folder,
                        model=model,
                        seed=world.plan.seed,
                    )
                )
                services, stores = written.services, written.stores
                self.stores, self.participation = stores, services.participation
                self.guild = await self.participation.of_guild(GUILD_ID)
                await stores.servers.change(
                    GUILD_ID, lambda now: replace(now, posts_recap=True, asks=world.plan.asks), by=1
                )
                readable = _readers(written, model)
                posts = PostedRenewal(stores.sessions, readable, zone=UTC)
                forgetting = RoomForgetting(self.participation, stores.upkeeps, stores.servers, posts=posts)
                logs = log_path(world.folder).parent
                self.forgetter = PersonForgetter(stores.database, clock, log_folder=logs)
                self.personal = PersonalData(stores.database, self.forgetter, stores.people, rooms=forgetting)
                lock = await stack.enter_async_context(stores.database.held_by_bot())
                await stack.enter_async_context(background_task(posts.run(self.channel), name="posted-renewal"))
                self.rooms = await stack.enter_async_context(
                    Rooms(
                        partial(self._make_room, self._of_evening(services, readable)),
                        clock=clock,
                        servers=stores.servers,
                        end_session=partial(end_open_session, stores.sessions, lock),
                    )
                )
                self._ready.set()
                await self._stopped.wait()

    def _of_evening(self, services: RoomServices, readable: MemoryReaders) -> RoomServices:
        """Return the services with the evening's voice and tool, and with readers of the memory."""
        tool, open_toolbox = make_tool(self._world, self._on_tool), services.replies.open_toolbox

        def opened(here: RecallScope, channel: RoomChannel, talk: TalkTools) -> Toolbox:
            return open_toolbox(here, channel, replace(talk, personal=(*talk.personal, lambda _: (tool,))))

        return replace(
            services,
            speech=SpeechModels(self._recogniser, LoudnessDetector(), EveningVoice(self._world)),
            memory=replace(services.memory, readable=readable),
            replies=replace(services.replies, open_toolbox=opened),
            servers=self.stores.servers,
        )

    def _make_room(self, services: RoomServices, channel: RoomChannel, listen: ListenRequest | None) -> Room:
        self._session = Room(channel, services, listen)
        self._world.rooms.append(ref(self._session))
        return self._session

    def _see(self, event: events.Event) -> None:
        if self._world.is_halted:
            return
        if isinstance(event, events.RoomOpened):
            self._world.on_consent(self.guild.consent.agreed)
        elif isinstance(event, events.RoomClosed):
            # What it takes from now on, it can't keep.
            self._session = None
        self._world.see(event)

    def _on_tool(self, what: str) -> None:
        """The tool is carried out."""
        self._world.note("ran", what)
        if not any(call.arguments.find(what) >= 0 and call.is_pressed for call in self.channel.calls):
            self._world.breaks("a call ran that nobody has pressed for")
        self._world.results_told += 1

    # -- shared screens ------------------------------------------------------------------------------------------

    def recorder(self, person: int) -> tuple[ShareRecorder, Sharer]:
        """Return what records the shares of the open session, and what a person shares."""
        world = self._world
        assert world.timeline is not None, "the room is open"
        recorder = ShareRecorder(
            world.timeline,
            guild_id=GUILD_ID,
            clock=world.clock,
            observe=world.see,
            words=self.guild.words,
        )
        sharer = Sharer(world.people[person], f"{self._number}-{person}")
        return recorder, self._sharers.setdefault(person, sharer)


def _readers(written: WrittenServices, model: WrittenModel) -> MemoryReaders:
    """Return what people may read of the memory."""

    async def summariser_of(_: int) -> Summariser:
        return model.summariser

    stores = written.stores
    views = SessionViews(stores.sessions, stores.turns, withheld=written.services.participation.withheld_on)
    digests = Digests(views, SessionHistory(stores.database), summariser_of=summariser_of)
    recall = PersonalRecall(written.recall, views, stores.sessions.attendance, reach=None, accesses=stores.accesses)
    return MemoryReaders(views, digests, recall)
