"""What writes a session down: a file or a thread that somebody has asked for, or captions: what is said, written while
the bot takes part.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from bot.background_task import owned_task
from bot.errors import BotError
from bot.llm.model_calls import PaidModel
from bot.posts.transcript import TranscriptFilePost, TranscriptWriter
from bot.posts.translation import CaptionTranslator
from bot.posts.words import transcript_file
from bot.room_part import RoomPart
from bot.texts.text import Text, sentence_of
from compaction.errors import StoreError

if TYPE_CHECKING:
    from bot import events
    from bot.conversation.services import RoomContext
    from bot.memory.transcript_files import TranscriptFile
    from bot.posts.notice import Announcer, ListeningNotice
    from bot.server_settings import ListenRequest
    from voice.queue_figures import QueueFigures

LOOK_EVERY_S = 1.0
NO_CAPTIONS = Text(
    "I have stopped writing captions, but I still talk with you. {why} If you want captions again, use "
    "/join with `captions`."
)


def wanted_captions(session: RoomContext) -> ListenRequest | None:
    """Return the captions that somebody wants there, or the server always has."""
    channel = session.channel
    return session.services.servers.of(channel.guild_id).captions_of(session.id, channel.channel_id)


def listening_notice(session: RoomContext, listen: ListenRequest | None) -> ListeningNotice:
    """Return the notice for people in the channel. `listen`: how what they say is written down."""
    services = session.services
    return services.notice.for_room(services.servers.of(session.channel.guild_id), listen=listen)


def new_writer(session: RoomContext, announcer: Announcer) -> RoomPart:
    """Return what writes the session down: instead of taking part, or the captions that are wanted."""
    if not session.guild.listens_only or session.listen is None:
        return Captions(session, announcer)
    if session.listen.target == "file":
        posted = session.services.memory.sessions.posted_transcripts
        return TranscriptFilePost(
            session.channel, session.id, posted, partial(_read_transcript, session), words=session.words
        )
    return _open_writer(session, session.listen)


class Captions(RoomPart):
    """The captions of one room, as long as somebody has asked for them or the server wants them. Both may change while
    a session runs. `announcer`: tells people which ones there are.

    *Ownership*: the room runs `run` in a task, and calls `finish` when it ends in order, before it cancels that task.
    """

    task = "captions"

    def __init__(self, session: RoomContext, announcer: Announcer) -> None:
        self._session = session
        self._announcer = announcer
        self._clock = session.services.clock
        self._writer: TranscriptWriter | None = None
        # What was tried in vain.
        self._impossible: ListenRequest | None = None

    def retry(self) -> None:
        """Try anew what was impossible: somebody has asked for it again."""
        self._impossible = None

    @property
    def queues(self) -> tuple[QueueFigures, ...]:
        """Return how many lines wait to be written."""
        return () if self._writer is None else self._writer.queues

    def on_event(self, event: events.Event) -> None:
        if self._writer is not None:
            self._writer.on_event(event)

    async def run(self) -> None:
        """Write the captions that are wanted. Never returns. Raises `NotAnnouncedError`."""
        while True:
            wanted = wanted_captions(self._session)
            if wanted is None or wanted == self._impossible:
                self._impossible = wanted
                await self._clock.sleep(LOOK_EVERY_S)
                continue
            try:
                await self._write(wanted)
            except BotError as error:
                self._impossible = wanted
                await self._give_up(error)
            self._writer = None
            await self._announce(None)

    async def _write(self, wanted: ListenRequest) -> None:
        """Write as long as these captions are wanted. Raises `ChatError` and `NotAnnouncedError`."""
        await self._announce(wanted)
        self._writer = _open_writer(self._session, wanted)
        async with owned_task(self._writer.run(), name="transcript") as writing:
            while wanted_captions(self._session) == wanted and not writing.done():
                await self._clock.sleep(LOOK_EVERY_S)
            if writing.done():
                writing.result()
            await self._writer.finish()

    async def _announce(self, listen: ListenRequest | None) -> None:
        await self._announcer.change(listening_notice(self._session, listen))

    async def _give_up(self, error: BotError) -> None:
        """Tell people why there are no captions any more. The talk goes on without them, until somebody asks anew."""
        session = self._session
        session.report("captions", error)
        await session.channel.write(NO_CAPTIONS.fill(why=sentence_of(error)))
        try:
            await session.services.servers.write_down(session.channel.guild_id, session.id, None)
        except StoreError as unstored:
            session.report("captions", unstored)

    async def finish(self, *, goes_on: bool = False, process_ends: bool = False) -> None:
        """Write the rest."""
        if self._writer is not None:
            await self._writer.finish()


def _open_writer(session: RoomContext, listen: ListenRequest) -> TranscriptWriter:
    channel, services, clock = session.channel, session.services, session.services.clock
    translator, model = None, services.replies.model
    if listen.language:
        completion = None if model is None else PaidModel(model, session.guild)
        translator = CaptionTranslator(completion, listen.language, channel, clock=clock)
    return TranscriptWriter(
        channel,
        session.id,
        listen.channel_id,
        words=session.words,
        clock=clock,
        servers=services.servers,
        posted=services.memory.sessions.posted_transcripts,
        translator=translator,
    )


async def _read_transcript(session: RoomContext) -> TranscriptFile:
    readers, zone = session.services.memory.readable, session.services.zone
    assert readers is not None, "a bot on Discord can read its memory"
    return await transcript_file(session.channel, session.opened.session, readers.views, zone=zone)
