"""Hears each person in a voice channel, in any bot of discord.py: `await channel.connect(cls=voice.HearingClient)`.

docs/hearing.md shows how to use it. `HearingClient` is what discord.py's client knows as the voice client of a server.
The connection itself is `transport.connection`, as in Roomtone; this module adds a queue of events that a program reads
at its own pace, utterances, and discord.py's commands for speaking.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import discord

from voice.audio import DISCORD_RATE_HZ, LISTEN_RATE_HZ
from voice.listening.listener import TICK_S, RoomListener
from voice.listening.utterance import ListeningEvent, PauseBegan, Utterance
from voice.transport.audio_events import AudioEvent, SpeakerLeft, SpeechFrames
from voice.transport.connection import DiscordVoiceConnection
from voice.transport.connection_events import ConnectionEvent, Lost
from voice.transport.discord_gateway import DiscordMainGateway, VoiceChannel, VoiceUpdateForwarder
from voice.transport.source_frames import SourceFrames

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Sequence

    from voice.listening.vad import SpeechProbability
    from voice.transport.counters import PacketCounters
    from voice.transport.outgoing import FrameSource
    from voice.transport.speaker_streams import HeardSince

# Events that may wait for a slow program: about 20 s of ten people who speak at once, 10 MB at 16 kHz.
MOST_WAITING = 10_000


@dataclass(frozen=True, slots=True)
class EventsDropped:
    """The program read too slowly: the `count` oldest events that waited are lost."""

    count: int


HearingEvent: TypeAlias = AudioEvent | ListeningEvent | ConnectionEvent | EventsDropped


def everybody(_user_id: int) -> float:
    """Return since when somebody may be heard where nobody is asked: always."""
    return float("-inf")


class EventQueue:
    """The events that wait for one reader. The oldest are dropped where more than `size` wait."""

    def __init__(self, size: int = MOST_WAITING, *, heard_since: HeardSince = everybody) -> None:
        """`heard_since`: as for the receiver. Sound that its speaker has forbidden since it came is not yielded."""
        self._heard_since = heard_since
        self._waiting: deque[HearingEvent] = deque(maxlen=size)
        self._arrived = asyncio.Event()
        self._dropped = 0
        self._is_closed = False
        self._reader = object()

    def put(self, events: Iterable[HearingEvent]) -> None:
        """Add events. Never waits."""
        for event in events:
            self._dropped += len(self._waiting) == self._waiting.maxlen
            self._waiting.append(event)
        self._arrived.set()

    def close(self) -> None:
        """Let the reading end after what waits."""
        self._is_closed = True
        self._arrived.set()

    async def read(self) -> AsyncIterator[HearingEvent]:
        """Yield the events until the queue is closed, or somebody else begins to read them."""
        mine = self._reader = object()
        self._arrived.set()
        while self._reader is mine and (self._waiting or not self._is_closed):
            if self._dropped:
                count, self._dropped = self._dropped, 0
                yield EventsDropped(count)
            elif self._waiting:
                event = self._waiting.popleft()
                if self._may_be_read(event):
                    yield event
            else:
                self._arrived.clear()
                await self._arrived.wait()

    def _may_be_read(self, event: HearingEvent) -> bool:
        match event:
            case SpeechFrames(user_id=speaker, captured_at=began):
                pass
            case Utterance(_, speaker, began) | PauseBegan(Utterance(_, speaker, began)):
                pass
            case _:
                return True
        since = self._heard_since(speaker)
        return since is not None and since <= began


class Consent:
    """Since when somebody may be heard, by a program's own `may_hear`. `clock`: monotonic seconds.

    What came before somebody agreed waits in the socket for a moment, and is not heard either.
    """

    def __init__(self, may_hear: Callable[[int], bool], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._may_hear = may_hear
        self._clock = clock
        self._not_before: dict[int, float] = {}

    def heard_since(self, user_id: int) -> float | None:
        """Return since when somebody may be heard: the last time that they might not, or the first that it was asked;
        None: they may not now. Any thread may ask.
        """
        now = self._clock()
        # Anything else is no permission, such as what a coroutine function returns.
        if self._may_hear(user_id) is True:
            return self._not_before.setdefault(user_id, now)
        self._not_before[user_id] = now
        return None


class HearingClient(VoiceUpdateForwarder):
    """A voice client that hears. Pass it to `channel.connect`, with `functools.partial` if it needs options.

    It reconnects by itself, and is over for good when it is disconnected, or taken out of the channel or moved. Use it
    on the event loop.
    """

    channel: VoiceChannel

    def __init__(
        self,
        client: discord.Client,
        channel: discord.abc.Connectable,
        *,
        may_hear: Callable[[int], bool] | None = None,
        rate_hz: int = LISTEN_RATE_HZ,
        vad: SpeechProbability | None = None,
    ) -> None:
        """`may_hear`: returns True if a person's sound may be decrypted, by their user id. The reader thread asks for
        each packet, so it is no coroutine function, and quick; None: everybody's. Bots are not heard. `rate_hz`: of the
        sound, 16,000 or 48,000. `vad`: a voice-activity model (`SileroVad`), with which utterances are cut, at 16 kHz;
        None: no utterances.
        """
        super().__init__(client, channel)
        if not isinstance(channel, VoiceChannel):
            raise TypeError("A HearingClient hears voice channels and stages of servers.")
        if rate_hz not in ({LISTEN_RATE_HZ, DISCORD_RATE_HZ} if vad is None else {LISTEN_RATE_HZ}):
            raise ValueError("Sound comes at 16000 or 48000 Hz, and utterances at 16000.")
        self.gateway = DiscordMainGateway(client, channel, forwarder=self)
        self._heard_since: HeardSince = everybody if may_hear is None else Consent(may_hear).heard_since
        self._rate_hz = rate_hz
        self._listener = None if vad is None else RoomListener(vad)
        self._ticking: asyncio.Task[None] | None = None
        # Cleans up after a loss for good.
        self._leaving: asyncio.Task[None] | None = None
        self._connection: DiscordVoiceConnection | None = None
        self._playing: SourceFrames | None = None
        self._events = EventQueue(heard_since=self._heard_since)
        self._is_over = False

    def is_connected(self) -> bool:
        """Return whether the connection is up."""
        return self._connection is not None and self._connection.connected

    def counters(self) -> PacketCounters:
        """Return how many packets came since the connection was made, by their fates."""
        assert self._connection is not None, "discord.py connects it"
        return self._connection.counters()

    def events(self) -> AsyncIterator[HearingEvent]:
        """Yield what is heard, and what becomes of the connection, in order, until the connection is over.

        At most `MOST_WAITING` events wait; beyond that the oldest are dropped, and `EventsDropped` counts them. A loop
        ends where another one begins.
        """
        return self._events.read()

    # Speaking, as discord.py's voice client does it.

    def play(
        self,
        source: discord.AudioSource | FrameSource,
        *,
        after: Callable[[Exception | None], Any] | None = None,
    ) -> None:
        """Play a source of discord.py, or frames (`Playback`) until `stop`. `after` is called at the end, in a thread.

        Raises `TypeError` for anything else, and `discord.ClientException` if the connection is over, something plays,
        or the bot is in the audience of a stage.
        """
        if not isinstance(source, discord.AudioSource) and not hasattr(source, "next_frame"):
            raise TypeError(f"A HearingClient plays an AudioSource or a Playback, and this is {type(source).__name__}.")
        if self._connection is None or self._is_over:
            raise discord.ClientException("Not connected to voice.")
        if self.is_playing():
            raise discord.ClientException("Already playing audio.")
        voice = self.channel.guild.me.voice
        if voice is not None and voice.suppress:
            raise discord.ClientException("I am in the audience of this stage. A moderator must let me speak.")
        self._playing = SourceFrames(source, after, bitrate_bps=self.gateway.channel.bitrate)
        self._connection.play(self._playing)

    def stop(self) -> None:
        """Stop playing."""
        playing, self._playing = self._playing, None
        if playing is not None:
            self.client.loop.run_in_executor(None, playing.end)

    def is_playing(self) -> bool:
        """Return whether something plays."""
        return self._playing is not None and not self._playing.over

    # Called by discord.py.

    async def connect(
        self,
        *,
        timeout: float,  # noqa: ASYNC109 - the library's signature
        reconnect: bool,
        self_deaf: bool = False,
        self_mute: bool = False,
    ) -> None:
        """Join the channel, neither deaf nor muted. Raises `VoiceConnectionError` with a plain sentence."""
        if self._connection is not None:
            # discord.py had dropped it with a new main session, and has it again.
            return
        connection = DiscordVoiceConnection(
            self.gateway,
            sink=self._hear,
            heard_since=self._heard_since,
            on_event=self._changed,
            rate_hz=self._rate_hz,
            connect_timeout_s=timeout,
        )
        self._connection = connection
        try:
            await connection.__aenter__()
        except BaseException:
            self._end()
            raise
        if self._listener is not None and not self._is_over:
            self._ticking = asyncio.create_task(
                self._tick(self._listener), name=f"voice-utterances-{self.gateway.channel.id}"
            )

    async def disconnect(self, *, force: bool = False) -> None:
        """Leave the channel. What was heard by then can still be read."""
        try:
            if self._connection is not None:
                await self._connection.__aexit__(None, None, None)
        finally:
            self._end()

    # Called by the connection.

    def release(self) -> None:
        """Stay in discord.py's client until the end."""

    def _hear(self, batch: Sequence[AudioEvent]) -> None:
        self._events.put(batch)
        if self._listener is not None:
            self._events.put(self._listener.hear(batch, time.monotonic()))

    def _changed(self, event: ConnectionEvent) -> None:
        self._events.put([event])
        if isinstance(event, Lost) and event.final:
            self._leaving = asyncio.create_task(self.disconnect(), name=f"voice-hearing-end-{self.gateway.channel.id}")

    async def _tick(self, listener: RoomListener) -> None:
        while True:
            await asyncio.sleep(TICK_S)
            for found in listener.tick_in_pieces(time.monotonic()):
                self._events.put(found)
                await asyncio.sleep(0)

    def _end(self) -> None:
        """Let discord.py's client forget it, and end what depends on the connection."""
        if self._is_over:
            return
        if self._ticking is not None:
            self._ticking.cancel()
        if self._listener is not None:
            now = time.monotonic()
            left = [SpeakerLeft(each, now) for each in self._listener.speaking]
            self._events.put(self._listener.hear(left, now))
        self._is_over = True
        self._events.close()
        if self in self.client.voice_clients:
            self.cleanup()
        self.stop()
