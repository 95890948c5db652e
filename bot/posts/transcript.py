"""Writes down a session in which the bot only listens: into a thread while people speak, or into a file at the end.

Whether it does is in the server's settings, so that it survives a crash of the process.

A thread gets few long messages rather than one for each sentence. Whoever has opted out is left out of what is written
from then on. What somebody said who is forgotten goes also from what was posted (`bot.posts.renewal`).
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

import structlog

from bot import events
from bot.channel.port import ChatError, ListenRequest
from bot.posts.words import first_message, lines_of
from bot.server_settings import ListenOnly
from bot.store.posted_transcripts import PostedKind, TranscriptMessage
from bot.texts.text import Text, sentence_of
from compaction.errors import StoreError
from compaction.model import TurnKind
from voice.queue_figures import QueueFigures
from voice.shielded import run_shielded

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterable
    from contextlib import AbstractAsyncContextManager

    from bot.channel.port import RoomChannel, Thread
    from bot.clock import Clock
    from bot.memory.transcript_files import TranscriptFile
    from bot.posts.words import WrittenLine
    from bot.server_settings import ServerSettings, ServerSettingsBook
    from bot.store.posted_transcripts import PostedTranscripts
    from bot.store.sessions import Sessions, StoredSession
    from bot.withdrawal import Drops, WordsWithdrawn
    from compaction.model import Seq, SessionId

log = structlog.get_logger()

# How often what was said goes into the thread.
WRITE_EVERY_S = 10.0
# After so many failures in a row the bot gives up.
MOST_FAILURES = 6
# Of the last minute: another process tells of a forgetting within seconds.
MOST_RECENT = 6
# More can not be said in `WRITE_EVERY_S`; a thread that Discord refuses for long loses the oldest lines.
MOST_LINES = 2_000
THREAD_UNSTORED = Text("I could not store that I write into this thread: after a crash I begin another. {error}")
END_MISSING = Text("The end of what was said is missing in the thread; /transcript has all of it. {why}")


class PostedLog(Protocol):
    """Notes which messages have words of a session. Raises `StoreError`."""

    async def begin(self) -> float | None:
        """Return what `filling` compares. Call it before it is looked at what may be posted."""

    def filling(
        self, channel_id: int, message_id: int, turns: tuple[Seq, Seq] | None, *, begun: float | None
    ) -> AbstractAsyncContextManager[None]:
        """Note a message into which the block puts the words of these turns, or of the whole session."""

    async def suspect(self, message_ids: Collection[int]) -> None:
        """Note that messages may have words that were forgotten before they were posted."""


class TranscriptWriter:
    """The transcript of one room. `drops`: returns whether what a person began to say then is left out.

    `read`: returns the session as a file; it raises `StoreError`. `thread_id`: the thread that an earlier room of the
    session has begun. `on_thread`: called with the id of each other one that takes its place. `posted`: is told of each
    message that has words.

    *Ownership*: the room runs `run` in a task, and calls `finish` when it ends in order, before it cancels that task.
    """

    def __init__(
        self,
        channel: RoomChannel,
        request: ListenRequest,
        *,
        drops: Drops,
        clock: Clock,
        read: Callable[[], Awaitable[TranscriptFile]],
        thread_id: int | None,
        on_thread: Callable[[int], Awaitable[None]],
        posted: PostedLog,
    ) -> None:
        self._channel = channel
        self._request = request
        self._drops = drops
        self._clock = clock
        self._read = read
        self._thread_id = thread_id
        self._on_thread = on_thread
        self._posted = posted
        # The last messages, and those of them that were written before this room knew that somebody was forgotten.
        self._recent: deque[int] = deque(maxlen=MOST_RECENT)
        self._suspected: set[int] = set()
        # A message that is begun and may be without its words: the next ones take their place.
        self._begun: int | None = None
        # A turn that was too long for one message.
        self._cut_turn: Seq | None = None
        self._lines: deque[WrittenLine] = deque(maxlen=MOST_LINES)
        self._thread: Thread | None = None
        # Held while the thread is begun or a message posted. `finish` waits for that: if it were broken off, nobody
        # would know what is written. A room that is cut off or crashes breaks it off, because Discord may stall.
        self._writing = asyncio.Lock()
        self._failures = 0
        self._dropped = 0

    @property
    def queue(self) -> QueueFigures:
        """Return how many lines wait to be written into the thread. A file is made from the store and needs none."""
        return QueueFigures("transcript", len(self._lines), MOST_LINES, {"full": self._dropped})

    def on_event(self, event: events.Event) -> None:
        """Take down a turn of speech for the thread."""
        if self._request.target != "thread":
            return
        if not isinstance(event, events.TurnRecorded) or event.turn.kind is not TurnKind.SPEECH:
            return
        begun_at: dict[str, float] = {}
        for spoken in event.utterances:
            begun_at.setdefault(str(spoken.user_id), spoken.started_at)
        for line in lines_of(event.turn, begun_at.__getitem__):
            self._dropped += len(self._lines) == MOST_LINES
            self._lines.append(line)

    def on_withdrawn(self, event: WordsWithdrawn) -> None:
        """Drop the waiting lines of these people. Another process may have forgotten them before the last messages were
        posted.
        """
        self._lines = deque((each for each in self._lines if each.speaker_id not in event.people), maxlen=MOST_LINES)
        if event.turns:
            self._suspected.update(self._recent)

    async def run(self) -> None:
        """Write what was said into the thread, again and again. Returns at once if a file is wanted.

        Raises `ChatError` if there can be no thread.
        """
        if self._request.target != "thread":
            return
        async with self._writing:
            # Shielded: after a crash the session's next room would begin a second one.
            await run_shielded(self._open_thread(), name="transcript-thread")
        while True:
            await self._clock.sleep(WRITE_EVERY_S)
            async with self._writing:
                await self._write_or_wait()

    async def finish(self) -> None:
        """Write the rest into the thread, or the file into the chat. A failure is told there. Never raises.

        A thread gets nothing more from `run`, which waits from then on.
        """
        if self._request.target == "thread":
            await self._writing.acquire()
        try:
            if self._request.target == "file":
                await self._post_file()
            elif self._thread is not None:
                await self._write()
        except (ChatError, StoreError) as error:
            log.warning("transcript_not_written", problem=error)
            await self._drop_begun()
            why = sentence_of(error)
            await self._channel.write(why if self._thread is None else END_MISSING.fill(why=why))

    async def _post_file(self) -> None:
        """Raises `ChatError` and `StoreError`."""
        begun = await self._posted.begin()
        file = await self._read()
        if not file.lines:
            return
        text = Text("This is what was said in {channel}.", channel=self._channel.name)
        message_id = await self._channel.begin_file(text)
        try:
            async with self._posted.filling(self._channel.channel_id, message_id, None, begun=begun):
                await self._channel.renew_file(message_id, (file.name, file.content))
        except (ChatError, StoreError):
            await self._channel.delete_post(message_id)
            raise

    async def _open_thread(self) -> None:
        self._thread = await self._channel.open_thread(self._request.channel_id, begun=self._thread_id)
        await self._keep_thread(self._thread)

    async def _write_or_wait(self) -> None:
        """Write what was said into the thread. Raises `ChatError` after too many failures in a row."""
        try:
            await self._write()
        except StoreError as error:
            # Nothing is posted that could not be forgotten any more.
            log.warning("transcript_waits", problem=error, lines=len(self._lines))
        except ChatError:
            # Discord may be down for a moment; what was not written waits.
            self._failures += 1
            log.warning("transcript_waits", failures=self._failures, lines=len(self._lines))
            if self._failures >= MOST_FAILURES:
                raise

    async def _write(self) -> None:
        """Write what was said into the thread. Raises `ChatError` and `StoreError`; what was not written stays."""
        assert self._thread is not None, "run opens it"
        if suspected := frozenset(self._suspected):
            await self._posted.suspect(suspected)
            self._suspected -= suspected
        waiting = list(self._lines)
        self._lines.clear()
        try:
            begun = await self._posted.begin()
            # Somebody may opt out while Discord takes its time over a message.
            while waiting := self._allowed(waiting):
                if self._begun is None:
                    # Shielded: a room that ends would leave a message without words.
                    await run_shielded(self._begin_message(self._thread), name="transcript-message")
                    continue
                await self._write_first(waiting, self._thread, begun=begun)
                begun = await self._posted.begin()
            # Nothing may be left of what a post had that failed.
            await self._drop_begun()
        except (ChatError, StoreError):
            self._put_back(waiting)
            raise

    async def _write_first(self, waiting: list[WrittenLine], thread: Thread, *, begun: float | None) -> None:
        """Write the first of the lines as one message, and take them off. Raises `ChatError` and `StoreError`."""
        lines = waiting
        if lines[0].seq == self._cut_turn:
            lines = [line for line in lines if line.seq == self._cut_turn]
        message, count = first_message((line.seq, str(line)) for line in lines)
        turns = lines[0].seq, lines[count - 1].seq
        # Shielded: nobody would know whether the words are there.
        await run_shielded(self._post(thread, message, turns, begun=begun), name="transcript-message")
        self._cut_turn = turns[1] if count < len(lines) and lines[count].seq == turns[1] else None
        del waiting[:count]
        self._failures = 0
        await self._keep_thread(thread)

    async def _post(self, thread: Thread, message: str, turns: tuple[Seq, Seq], *, begun: float | None) -> None:
        """Put words into the message that is begun. If that fails, the next ones take their place."""
        assert self._begun is not None
        async with self._posted.filling(thread.id, self._begun, turns, begun=begun):
            await thread.fill(self._begun, message)
        self._begun = None

    async def _begin_message(self, thread: Thread) -> None:
        self._begun = await thread.begin()
        self._recent.append(self._begun)

    async def _drop_begun(self) -> None:
        """Delete a message of which it is not known that the words are in it."""
        if self._thread is not None and self._begun is not None:
            await self._thread.delete(self._begun)
            self._begun = None

    async def _keep_thread(self, thread: Thread) -> None:
        """Tell `on_thread` if the session goes on in another thread than before."""
        if thread.id != self._thread_id:
            await self._on_thread(thread.id)
            self._thread_id = thread.id

    def _put_back(self, unwritten: Iterable[WrittenLine]) -> None:
        """Let lines wait again, before what was said meanwhile."""
        lines = [*unwritten, *self._lines]
        self._dropped += max(0, len(lines) - MOST_LINES)
        # The newest stay.
        self._lines = deque(lines, maxlen=MOST_LINES)

    def _allowed(self, lines: Iterable[WrittenLine]) -> list[WrittenLine]:
        return [line for line in lines if not self._is_dropped(line)]

    def _is_dropped(self, line: WrittenLine) -> bool:
        return line.speaker_id.isdecimal() and self._drops(int(line.speaker_id), started_at=line.begun_at)


def transcript_writer(
    channel: RoomChannel,
    wanted: ListenRequest,
    session: StoredSession,
    sessions: Sessions,
    read: Callable[[], Awaitable[TranscriptFile]],
    servers: ServerSettingsBook,
    *,
    drops: Drops,
    clock: Clock,
) -> TranscriptWriter:
    """Return what writes a session down as it is `wanted`. The rest as in `TranscriptWriter`."""

    async def note_thread(thread_id: int) -> None:
        """Store into which thread a session is written. A failure is told: after a crash another thread is begun."""
        try:
            await store_thread(thread_id, session.id, channel.guild_id, servers)
        except StoreError as error:
            log.warning("thread_not_stored", problem=error)
            await channel.write(THREAD_UNSTORED.fill(error=sentence_of(error)))

    return TranscriptWriter(
        channel,
        wanted,
        drops=drops,
        clock=clock,
        read=read,
        thread_id=stored_thread(session.id, channel.guild_id, servers),
        on_thread=note_thread,
        posted=SessionPosts(sessions.posted_transcripts, session.id, channel.guild_id),
    )


class SessionPosts:
    """Implements `PostedLog` for one session."""

    def __init__(self, posted: PostedTranscripts, session_id: SessionId, guild_id: int) -> None:
        self._posted = posted
        self._session_id = session_id
        self._guild_id = guild_id

    async def begin(self) -> float | None:
        return await self._posted.begin(self._session_id)

    def filling(
        self, channel_id: int, message_id: int, turns: tuple[Seq, Seq] | None, *, begun: float | None
    ) -> AbstractAsyncContextManager[None]:
        message = TranscriptMessage(self._guild_id, channel_id, message_id)
        kind = PostedKind.FILE if turns is None else PostedKind.LINES
        return self._posted.filling(self._session_id, message, kind, begun=begun, turns=turns)

    async def suspect(self, message_ids: Collection[int]) -> None:
        await self._posted.mark(message_ids)


def stored_request(
    guild_id: int, servers: ServerSettingsBook, session_id: SessionId | None = None
) -> ListenRequest | None:
    """Return how the server's last session is written down; None if the bot takes part. `session_id`: only if it is
    this one.
    """
    stored = servers.of(guild_id).listen_only
    if stored is None or session_id not in (None, stored.session_id):
        return None
    return ListenRequest(stored.target, stored.channel_id)


async def remembered_request(
    wanted: ListenRequest | None, session_id: SessionId, guild_id: int, servers: ServerSettingsBook
) -> ListenRequest | None:
    """Return how the session is written down, or None if the bot takes part, and store that. `wanted`: what somebody
    has asked for; without it, what an earlier room of the same session was asked for counts. Raises `StoreError`.
    """
    stored = stored_request(guild_id, servers, session_id)
    wanted = wanted or stored
    to_store = None if wanted is None else ListenOnly(session_id, wanted.target, wanted.channel_id)
    # One that is stored already keeps its thread.
    if wanted != stored or (to_store is None and servers.of(guild_id).listen_only is not None):
        await servers.change(guild_id, lambda now: replace(now, listen_only=to_store), by=None)
    return wanted


def stored_thread(session_id: SessionId, guild_id: int, servers: ServerSettingsBook) -> int | None:
    """Return the id of the thread into which an earlier room of the session has written; None if there is none."""
    stored = servers.of(guild_id).listen_only
    return None if stored is None or stored.session_id != session_id else stored.thread_id


async def store_thread(thread_id: int, session_id: SessionId, guild_id: int, servers: ServerSettingsBook) -> None:
    """Store into which thread a session is written. Raises `StoreError`."""

    def with_thread(now: ServerSettings) -> ServerSettings:
        listen = now.listen_only
        if listen is None or listen.session_id != session_id:
            return now
        return replace(now, listen_only=replace(listen, thread_id=thread_id))

    await servers.change(guild_id, with_thread, by=None)
