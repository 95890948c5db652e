"""Writes down what is said: into a thread while people speak, as captions or instead of taking part; or into a file at
the end.

Whether it does is in the server's settings, so that it survives a crash of the process.

In a thread the last message grows, until it is full or old. Whoever has opted out is left out of what is written from
then on. What somebody said who is forgotten goes also from what was posted (`bot.posts.renewal`), and a message that
had it grows no more.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import structlog

from bot import events
from bot.channel.port import ChatError, ListenRequest
from bot.posts.translation import CaptionTranslator
from bot.posts.words import first_message, lines_of
from bot.room_part import RoomPart
from bot.server_settings import ListenOnly
from bot.store.posted_transcripts import PostedKind, TranscriptMessage
from bot.texts.text import Text, sentence_of
from compaction.errors import StoreError
from voice.queue_figures import QueueFigures
from voice.shielded import run_shielded

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection
    from contextlib import AbstractAsyncContextManager

    from bot.channel.port import RoomChannel, Thread
    from bot.clock import Clock
    from bot.events import SpokenText
    from bot.memory.transcript_files import TranscriptFile
    from bot.posts.words import WrittenLine
    from bot.server_settings import ServerSettings, ServerSettingsBook
    from bot.store.posted_transcripts import PostedTranscripts
    from bot.store.sessions import Sessions, StoredSession
    from bot.withdrawal import Drops, WordsWithdrawn
    from compaction.model import Seq, SessionId
    from compaction.ports import Completion

log = structlog.get_logger()

# How often what was said goes into the thread. Discord takes five edits of a channel's messages in five seconds.
WRITE_EVERY_S = 2.0
# Who reads captions looks at the end of the chat, and others write there too.
GROWS_FOR_S = 300.0
# After so many failures in a row, a minute at least, the bot gives up.
MOST_FAILURES = 30
# Of the last minute: another process tells of a forgetting within seconds.
MOST_RECENT = 6
# A thread that Discord refuses for long loses the oldest lines.
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


@dataclass(frozen=True, slots=True)
class GrowingMessage:
    """A message that more lines may be added to. `begun`: what `PostedLog.begin` returned when it was posted, at
    `begun_at` (monotonic seconds).
    """

    message_id: int
    lines: tuple[WrittenLine, ...]
    begun: float | None
    begun_at: float

    def grows(self, begun: float | None, *, now: float) -> bool:
        """Return whether more may be added: nothing was forgotten since it was posted, and that is not long ago."""
        return begun == self.begun and now - self.begun_at < GROWS_FOR_S


class TranscriptWriter(RoomPart):
    """The transcript of one room. `drops`: returns whether what a person began to say then is left out.

    `read`: returns the session as a file; it raises `StoreError`. `thread_id`: the thread that an earlier room of the
    session has begun. `on_thread`: called with the id of each other one that takes its place. `posted`: is told of each
    message that has words. `translator`: None: lines are written as they were said.

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
        translator: CaptionTranslator | None = None,
    ) -> None:
        self._channel = channel
        self._request = request
        self._drops = drops
        self._clock = clock
        self._read = read
        self._thread_id = thread_id
        self._on_thread = on_thread
        self._posted = posted
        self._translator = translator
        # The last messages, and those of them that were written before this room knew that somebody was forgotten.
        self._recent: deque[int] = deque(maxlen=MOST_RECENT)
        self._suspected: set[int] = set()
        # A message that is begun and may be without its words: the next ones take their place.
        self._begun: int | None = None
        # The last message, while it grows.
        self._growing: GrowingMessage | None = None
        # A turn that was too long for one message.
        self._cut_turn: Seq | None = None
        self._withdrawals = 0
        # What is not written yet.
        self._lines: deque[WrittenLine] = deque(maxlen=MOST_LINES)
        self._thread: Thread | None = None
        # Held while the thread is begun or a message posted. `finish` waits for that: if it were broken off, nobody
        # would know what is written. A room that is cut off or crashes breaks it off, because Discord may stall.
        self._writing = asyncio.Lock()
        self._failures = 0
        self._dropped = 0

    @property
    def queues(self) -> tuple[QueueFigures, ...]:
        """Return how many lines wait to be written into the thread. A file is made from the store and needs none."""
        return (QueueFigures("transcript", len(self._lines), MOST_LINES, {"full": self._dropped}),)

    def on_event(self, event: events.Event) -> None:
        """Take down a turn of speech for the thread."""
        if self._request.target != "thread" or not isinstance(event, events.TurnRecorded):
            return
        heard: dict[str, SpokenText] = {}
        for spoken in event.utterances:
            heard.setdefault(str(spoken.user_id), spoken)
        for line in lines_of(event.turn, heard):
            self._dropped += len(self._lines) == MOST_LINES
            self._lines.append(line)

    def on_withdrawn(self, event: WordsWithdrawn) -> None:
        """Drop the waiting lines of these people. Those of the bot may repeat withdrawn turns. Another process may have
        forgotten them before the last messages were posted.
        """
        self._lines = deque((each for each in self._lines if not _is_withdrawn(each, event)), maxlen=MOST_LINES)
        self._withdrawals += 1
        # Its words are made anew without these (`bot.posts.renewal`), and no edit brings them back.
        self._growing = None
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

    async def finish(self, *, goes_on: bool = False, process_ends: bool = False) -> None:
        """Write the rest into the thread, or the file into the chat. A failure is told there. Never raises.

        A thread gets nothing more from `run`, which waits from then on.
        """
        del goes_on, process_ends
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
        if not (await self._read()).lines:
            return
        text = Text("This is what was said in {channel}.", channel=self._channel.name)
        message_id = await self._channel.begin_file(text)
        try:
            async with self._posted.filling(self._channel.channel_id, message_id, None, begun=begun):
                withdrawals = -1
                # Somebody may opt out while it is read or posted.
                while withdrawals != self._withdrawals:
                    withdrawals, file = self._withdrawals, await self._read()
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
        await self._translate()
        # Somebody may opt out while Discord takes its time over a message.
        while waiting := self._allowed():
            begun = await self._posted.begin()
            grown = self._growable(waiting[0], begun)
            if grown is None and self._begun is None:
                # Shielded: a room that ends would leave a message without words.
                await run_shielded(self._begin_message(self._thread), name="transcript-message")
            else:
                await self._write_first(waiting, self._thread, grown, begun=begun)
        self._lines.clear()
        # Nothing may be left of what a post had that failed.
        await self._drop_begun()

    async def _translate(self) -> None:
        """Translate what waits, as far as that is wanted and the model is there."""
        while self._translator is not None and (found := await self._translator.translate(self._allowed())):
            # Some of them may be withdrawn by now.
            self._lines = deque((found.get(each, each) for each in self._lines), maxlen=MOST_LINES)

    def _growable(self, first: WrittenLine, begun: float | None) -> GrowingMessage | None:
        """Return the message that grows by what waits; None: another one begins. `first`: what waits first."""
        grown = self._growing
        if grown is None or first.seq == self._cut_turn or not grown.grows(begun, now=self._clock.monotonic()):
            return None
        return grown

    async def _write_first(
        self, waiting: list[WrittenLine], thread: Thread, grown: GrowingMessage | None, *, begun: float | None
    ) -> None:
        """Write the first of the lines: a message grows by them, or one that is begun gets them. Raises `ChatError` and
        `StoreError`.
        """
        cut = waiting[0].seq == self._cut_turn
        if cut:
            waiting = [line for line in waiting if line.seq == self._cut_turn]
        known = () if grown is None else grown.lines
        lines = (*known, *waiting)
        text, count = first_message((line.seq, str(line)) for line in lines)
        if grown is not None and count <= len(known):
            # It is full.
            self._growing = None
            return
        turns = lines[0].seq, lines[count - 1].seq
        post = self._post(thread, text, turns, begun=begun, grows=None if grown is None else grown.message_id)
        withdrawals = self._withdrawals
        # Shielded: nobody would know whether the words are there.
        message_id = await run_shielded(post, name="transcript-message")
        self._growing, self._failures = None, 0
        if message_id is None:
            # Somebody has deleted it: what it had does not come back.
            return
        self._cut_turn = turns[1] if count < len(lines) and lines[count].seq == turns[1] else None
        written = set(lines[len(known) : count])
        self._lines = deque((line for line in self._lines if line not in written), maxlen=MOST_LINES)
        if withdrawals != self._withdrawals:
            self._suspected.add(message_id)
        elif not cut and self._cut_turn is None:
            begun_at = self._clock.monotonic() if grown is None else grown.begun_at
            self._growing = GrowingMessage(message_id, lines[:count], begun, begun_at)
        await self._keep_thread(thread)

    async def _post(
        self, thread: Thread, text: str, turns: tuple[Seq, Seq], *, begun: float | None, grows: int | None
    ) -> int | None:
        """Put words into a message that is noted, and return its id; None if somebody has deleted it. `grows`: the
        message that has the first of them; None: the one that is begun. If that fails, the next words take its place.
        """
        message_id = self._begun if grows is None else grows
        assert message_id is not None, "it is begun before"
        async with self._posted.filling(thread.id, message_id, turns, begun=begun):
            is_there = await thread.fill(message_id, text)
        if grows is None:
            self._begun = None
        return message_id if is_there else None

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

    def _allowed(self) -> list[WrittenLine]:
        """Return what waits and may be written."""
        return [line for line in self._lines if not self._is_dropped(line)]

    def _is_dropped(self, line: WrittenLine) -> bool:
        return line.speaker_id.isdecimal() and self._drops(int(line.speaker_id), started_at=line.begun_at)


def _is_withdrawn(line: WrittenLine, event: WordsWithdrawn) -> bool:
    """Return whether a line has withdrawn words. What the bot has said may repeat them."""
    return line.speaker_id in event.people or (bool(event.turns) and not line.speaker_id.isdecimal())


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
    completion: Completion | None,
) -> TranscriptWriter:
    """Return what writes a session down as it is `wanted`. `completion`: translates it; None: there is no model. The
    rest as in `TranscriptWriter`.
    """

    async def note_thread(thread_id: int) -> None:
        """Store into which thread a session is written. A failure is told: after a crash another thread is begun."""
        try:
            await store_thread(thread_id, session.id, channel.guild_id, servers)
        except StoreError as error:
            log.warning("thread_not_stored", problem=error)
            await channel.write(THREAD_UNSTORED.fill(error=sentence_of(error)))

    translator = None
    if wanted.language:
        translator = CaptionTranslator(
            completion, wanted.language, tell=channel.write, shown_in=lambda: channel.language, clock=clock
        )
    return TranscriptWriter(
        channel,
        wanted,
        drops=drops,
        clock=clock,
        read=read,
        thread_id=stored_thread(session.id, channel.guild_id, servers),
        on_thread=note_thread,
        posted=SessionPosts(sessions.posted_transcripts, session.id, channel.guild_id),
        translator=translator,
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
    """Return how the server's last session is written down; None if it is not. `session_id`: only if it is this one."""
    stored = servers.of(guild_id).listen_only
    if stored is None or session_id not in (None, stored.session_id):
        return None
    return ListenRequest(stored.target, stored.channel_id, captions=stored.captions, language=stored.language)


async def remembered_request(
    wanted: ListenRequest | None, session_id: SessionId, channel: RoomChannel, servers: ServerSettingsBook
) -> ListenRequest | None:
    """Return how the session is written down, or None if it is not, and store that. `wanted`: what somebody has asked
    for; without it, what an earlier room of the same session was asked for counts, and then the server's captions.
    Raises `StoreError`.
    """
    guild_id, chosen = channel.guild_id, servers.of(channel.guild_id)
    stored = stored_request(guild_id, servers, session_id)
    wanted = wanted or stored
    if wanted is None and chosen.captions:
        wanted = ListenRequest("thread", channel.channel_id, captions=True, language=chosen.captions_language)
    to_store = None
    if wanted is not None:
        to_store = ListenOnly(
            session_id, wanted.target, wanted.channel_id, captions=wanted.captions, language=wanted.language
        )
    # One that is stored already keeps its thread.
    if wanted != stored or (to_store is None and chosen.listen_only is not None):
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
