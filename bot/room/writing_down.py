"""What writes a session down: a file or a thread that somebody has asked for, or captions beside the talk."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from bot.posts.captions import Captions
from bot.posts.transcript import TranscriptFilePost, TranscriptWriter
from bot.posts.translation import CaptionTranslator
from bot.posts.words import transcript_file
from bot.texts.text import Text, sentence_of
from compaction.errors import StoreError

if TYPE_CHECKING:
    from bot.conversation.services import RoomContext
    from bot.errors import BotError
    from bot.memory.transcript_files import TranscriptFile
    from bot.posts.notice import Announcer, ListeningNotice
    from bot.room_part import RoomPart
    from bot.server_settings import ListenRequest

NO_CAPTIONS = Text("I write no captions any more, and go on taking part. {why} /join with `captions` begins new ones.")


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
        return Captions(
            wanted=partial(wanted_captions, session),
            open_writer=partial(_open_writer, session),
            announce=lambda listen: announcer.change(listening_notice(session, listen)),
            give_up=partial(_give_up_captions, session),
            clock=session.services.clock,
        )
    if session.listen.target == "file":
        posted = session.services.memory.sessions.posted_transcripts
        return TranscriptFilePost(
            session.channel, session.id, posted, partial(_read_transcript, session), words=session.words
        )
    return _open_writer(session, session.listen)


def _open_writer(session: RoomContext, listen: ListenRequest) -> TranscriptWriter:
    channel, services, clock = session.channel, session.services, session.services.clock
    translator, open_completion = None, services.replies.open_completion
    if listen.language:
        translator = CaptionTranslator(
            None if open_completion is None else open_completion(session.guild.payer),
            listen.language,
            tell=channel.write,
            shown_in=lambda: channel.language,
            clock=clock,
        )
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


async def _give_up_captions(session: RoomContext, error: BotError) -> None:
    """Tell people why there are no captions any more. The talk goes on without them, until somebody asks anew."""
    session.report("captions", error)
    await session.channel.write(NO_CAPTIONS.fill(why=sentence_of(error)))
    try:
        await session.services.servers.write_down(session.channel.guild_id, session.id, None)
    except StoreError as unstored:
        session.report("captions", unstored)


async def _read_transcript(session: RoomContext) -> TranscriptFile:
    readers, zone = session.services.memory.readable, session.services.zone
    assert readers is not None, "a bot on Discord can read its memory"
    return await transcript_file(session.channel, session.opened.session, readers.views, zone=zone)
