"""Writes down what is said: into a thread while people speak, as captions or instead of taking part; or into a file at
the end.

In a thread the last message grows, until it is full or old. Whoever has opted out is left out of what is written from
then on. What somebody said who is forgotten goes also from what was posted (`bot.posts.renewal`), and a message that
had it grows no more.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import structlog

from bot import events
from bot.channel.port import ChannelGoneError, ChatError, Posts, RoomChannel
from bot.posts.words import WrittenLine, first_message, lines_of
from bot.room_part import RoomPart
from bot.store.posted_transcripts import PostedKind, PostedTranscripts, TranscriptMessage
from bot.texts.text import Text, sentence_of
from bot.words import SESSION, Leased, Words
from compaction.errors import StoreError
from voice.cancellation import run_shielded
from voice.queue_figures import QueueFigures

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from bot.clock import Clock
    from bot.events import SpokenText
    from bot.memory.transcript_files import TranscriptFile
    from bot.posts.translation import CaptionTranslator
    from bot.server_settings import ServerSettings, ServerSettingsBook
    from compaction.model import Seq, SessionId

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
THREAD_UNSTORED = Text(
    "I could not save which thread I write into. If I have to start again, I begin a new thread. {error}"
)
END_MISSING = Text("The last part of what was said is missing in the thread. Use /transcript to get all of it. {why}")


@dataclass(frozen=True, slots=True)
class GrowingMessage:
    """A message that lines may be added to, begun at `begun_at` (monotonic seconds). Without lines it is begun, and may
    be without its words. `known`: what `PostedTranscripts.begin` returned when they were posted.
    """

    message_id: int
    begun_at: float
    lines: tuple[WrittenLine, ...] = ()
    known: int | None = None

    def grows(self, known: int | None, *, now: float) -> bool:
        """Return whether more may be added: nothing was forgotten since it was posted, and that is not long ago."""
        return not self.lines or (known == self.known and now - self.begun_at < GROWS_FOR_S)


class TranscriptFilePost(RoomPart):
    """The transcript of one room as a file, posted when it ends in order. `read`: returns it; it raises `StoreError`.
    `posted`: is told of the message. `words`: those of the session.
    """

    def __init__(
        self,
        channel: RoomChannel,
        session_id: SessionId,
        posted: PostedTranscripts,
        read: Callable[[], Awaitable[TranscriptFile]],
        *,
        words: Words,
    ) -> None:
        self._channel = channel
        self._session_id = session_id
        self._posted = posted
        self._read = read
        self._words = words

    async def finish(self, *, goes_on: bool = False, process_ends: bool = False) -> None:
        """Post the file into the chat. A failure is told there. Never raises."""
        try:
            await self._post()
        except (ChatError, StoreError) as error:
            log.warning("transcript_not_written", problem=error)
            await self._channel.write(sentence_of(error))

    async def _post(self) -> None:
        """Raises `ChatError` and `StoreError`."""
        channel, posts = self._channel, self._channel.posts
        known = await self._posted.begin(self._session_id)
        if not (await self._read()).lines:
            return
        message_id = await posts.begin(Text("This is what was said in {channel}.", channel=channel.name))
        message = TranscriptMessage(channel.guild_id, channel.channel_id, message_id)
        try:
            async with self._posted.filling(self._session_id, message, PostedKind.FILE, begun=known):
                epoch = -1
                # Somebody may opt out while it is read or posted.
                while epoch != self._words.epoch:
                    epoch, file = self._words.epoch, await self._read()
                    await posts.fill(message_id, (file.name, file.content))
        except (ChatError, StoreError):
            await posts.delete(message_id)
            raise


class TranscriptWriter(RoomPart):
    """The transcript of one room in a thread of the text channel `into`. `words`: those of the session. `posted`: is
    told of each message that has words. `translator`: None: lines are written as they were said.

    *Ownership*: whoever runs `run` in a task calls `finish` at the end in order, before it cancels that task.
    """

    def __init__(
        self,
        channel: RoomChannel,
        session_id: SessionId,
        into: int,
        *,
        words: Words,
        clock: Clock,
        servers: ServerSettingsBook,
        posted: PostedTranscripts,
        translator: CaptionTranslator | None = None,
    ) -> None:
        self._channel = channel
        self._session_id = session_id
        self._into = into
        self._words = words
        self._clock = clock
        self._servers = servers
        self._posted = posted
        self._translator = translator
        # The last messages, and the epoch of the words in which they were written. Later the room may learn that
        # somebody was forgotten before.
        self._recent: deque[int] = deque(maxlen=MOST_RECENT)
        self._epoch = words.epoch
        # The last message, while it grows.
        self._growing: GrowingMessage | None = None
        # A turn that was too long for one message.
        self._cut_turn: Seq | None = None
        # Turns of which something was withheld. A message that is made anew must not publish it.
        self._left_out: set[Seq] = set()
        # What is not written yet, each with its turn.
        self._lines: list[tuple[Seq, Leased[WrittenLine]]] = []
        self._thread: Posts | None = None
        # Held while the thread is begun or a message posted. `finish` waits for that: if it were broken off, nobody
        # would know what is written. A room that is cut off or crashes breaks it off, because Discord may stall.
        self._writing = asyncio.Lock()
        self._is_over = False
        self._failures = 0
        self._dropped = 0

    @property
    def queues(self) -> tuple[QueueFigures, ...]:
        """Return how many lines wait to be written into the thread."""
        return (QueueFigures("transcript", len(self._lines), MOST_LINES, {"full": self._dropped}),)

    def on_event(self, event: events.Event) -> None:
        """Take down a turn of speech for the thread."""
        if not isinstance(event, events.TurnRecorded):
            return
        heard: dict[str, SpokenText] = {}
        for spoken in event.utterances:
            heard.setdefault(str(spoken.user_id), spoken)
        for line in lines_of(event.turn, heard):
            # What the bot has said may repeat anybody.
            source = line.speaker_id if line.speaker_id.isdecimal() else SESSION
            self._lines.append((line.seq, Leased(line, self._words.lease({source}, since=line.begun_at))))
        self._dropped += max(0, len(self._lines) - MOST_LINES)
        del self._lines[:-MOST_LINES]

    async def run(self) -> None:
        """Write what was said into the thread, again and again, until it is finished. Raises `ChatError` if there can
        be no thread.
        """
        async with self._writing:
            # Shielded: after a crash the session's next room would begin a second one.
            await run_shielded(self._open_thread(), name="transcript-thread")
        while not self._is_over:
            await self._clock.sleep(WRITE_EVERY_S)
            async with self._writing:
                await self._write_or_wait()

    async def finish(self, *, goes_on: bool = False, process_ends: bool = False) -> None:
        """Write the rest into the thread. A failure is told in the chat. Never raises."""
        async with self._writing:
            self._is_over = True
            try:
                if self._thread is not None:
                    await self._write(self._thread)
            except (ChatError, StoreError) as error:
                log.warning("transcript_not_written", problem=error)
                await self._drop_begun()
                await self._channel.write(END_MISSING.fill(why=sentence_of(error)))

    async def _open_thread(self) -> None:
        """Open the thread, which an earlier room of the session may have begun, and store which it is."""
        stored = self._servers.of(self._channel.guild_id).written_down(self._session_id)
        begun = None if stored is None else stored.thread_id
        self._thread = await self._channel.open_thread(self._into, begun=begun)
        if self._thread.id == begun:
            return
        thread_id = self._thread.id

        def with_thread(now: ServerSettings) -> ServerSettings:
            listen = now.written_down(self._session_id)
            return now if listen is None else replace(now, listen_only=replace(listen, thread_id=thread_id))

        try:
            await self._servers.change(self._channel.guild_id, with_thread, by=None)
        except StoreError as error:
            log.warning("thread_not_stored", problem=error)
            await self._channel.write(THREAD_UNSTORED.fill(error=sentence_of(error)))

    async def _write_or_wait(self) -> None:
        """Write what was said into the thread. Raises `ChatError` after too many failures in a row, and at once
        `ChannelGoneError`.
        """
        try:
            if self._thread is not None and not self._is_over:
                await self._write(self._thread)
        except StoreError as error:
            # Nothing is posted that could not be forgotten any more.
            log.warning("transcript_waits", problem=error, lines=len(self._lines))
        except ChannelGoneError:
            # It does not come back, and each further request would be refused.
            self._thread = None
            raise
        except ChatError:
            # Discord may be down for a moment; what was not written waits.
            self._failures += 1
            log.warning("transcript_waits", failures=self._failures, lines=len(self._lines))
            if self._failures >= MOST_FAILURES:
                raise

    async def _write(self, thread: Posts) -> None:
        """Write what was said into the thread. Raises `ChatError` and `StoreError`; what was not written stays."""
        while self._translator is not None and (found := await self._translator.translate(self._allowed())):
            for at, (seq, each) in enumerate(self._lines):
                if (line := each.take()) is not None and line in found:
                    self._lines[at] = (seq, Leased(found[line], each.lease))
        while await self._marked() and self._allowed():
            known = await self._posted.begin(self._session_id)
            message = self._growing
            if message is None or not message.grows(known, now=self._clock.monotonic()):
                # Shielded: a room that ends would leave a message without words.
                await run_shielded(self._begin_message(thread), name="transcript-message")
            else:
                await self._fill(thread, message, known)
        self._lines.clear()
        # Nothing may be left of what a post had that failed.
        await self._drop_begun()

    async def _marked(self) -> bool:
        """If words were taken back, also while Discord took its time over a message, have the last messages made anew
        without them (`bot.posts.renewal`). They grow no more, so no edit brings the words back. Raises `StoreError`.
        """
        if (epoch := self._words.epoch) != self._epoch:
            if self._growing is not None and self._growing.lines:
                self._growing = None
            await self._posted.mark(frozenset(self._recent))
            self._epoch = epoch
        return True

    async def _begin_message(self, thread: Posts) -> None:
        self._growing = GrowingMessage(await thread.begin(), self._clock.monotonic())
        self._recent.append(self._growing.message_id)

    async def _fill(self, thread: Posts, message: GrowingMessage, known: int | None) -> None:
        """Add the first of the lines to a message. Raises `ChatError` and `StoreError`."""
        if not (waiting := self._allowed()):
            return
        if cut := waiting[0].seq == self._cut_turn:
            waiting = [line for line in waiting if line.seq == self._cut_turn]
        before, lines = len(message.lines), (*message.lines, *waiting)
        text, count = first_message((line.seq, str(line)) for line in lines)
        if before and count <= before:
            # It is full.
            self._growing = None
            return
        turns = (lines[0].seq, lines[count - 1].seq)
        # Shielded: nobody would know whether the words are there.
        post = self._post(thread, message.message_id, text, turns, known)
        is_there = await run_shielded(post, name="transcript-message")
        self._growing, self._failures = None, 0
        if not is_there:
            # Somebody has deleted it: what it had does not come back.
            return
        self._cut_turn = turns[1] if count < len(lines) and lines[count].seq == turns[1] else None
        self._lines = [each for each in self._lines if each[1].take() not in lines[before:count]]
        if not cut and self._cut_turn is None:
            self._growing = replace(message, lines=lines[:count], known=known)

    async def _post(self, thread: Posts, message_id: int, text: str, turns: tuple[Seq, Seq], known: int | None) -> bool:
        """Put words into a message that is noted; return False if somebody has deleted it."""
        message = TranscriptMessage(self._channel.guild_id, thread.id, message_id)
        self._left_out = {seq for seq in self._left_out if seq >= turns[0]}
        out = [seq for seq in self._left_out if seq <= turns[1]]
        async with self._posted.filling(
            self._session_id, message, PostedKind.LINES, begun=known, turns=turns, left_out=out
        ):
            return await thread.fill(message_id, text)

    async def _drop_begun(self) -> None:
        """Delete a message of which it is not known that the words are in it."""
        if self._thread is not None and self._growing is not None and not self._growing.lines:
            await self._thread.delete(self._growing.message_id)
            self._growing = None

    def _allowed(self) -> list[WrittenLine]:
        """Return what waits and may be written."""
        found = [(each, each[1].take()) for each in self._lines]
        self._left_out.update(seq for (seq, _), line in found if line is None)
        self._lines = [each for each, line in found if line is not None]
        return [line for _, line in found if line is not None]
