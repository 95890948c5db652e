"""What a written scenario has in place of a voice channel: people's speech, a recogniser that is given the words and a
synthesiser of tones; the channel with its people, and a connection that sends when it is told to. And a clock that is
advanced by hand, for measurements and tests that have no loop in virtual time.

They implement the bot's own ports, so that everything behind the ports is real.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import numpy as np

from bot.channel.port import (
    NO_WORDS_YET,
    CallMessage,
    CallRequest,
    Card,
    ChatError,
    ConnectionListener,
    DroppedFile,
    Person,
    Posts,
)
from bot.texts.text import ENGLISH, Text
from bot.viewers import Viewer
from voice.asr.port import Recognition, RecognitionRequest
from voice.audio import DISCORD_FRAME_SAMPLES, DISCORD_RATE_HZ, FRAME_MS, LISTEN_RATE_HZ, duration_s
from voice.errors import VoiceConnectionError
from voice.listening.vad import WINDOW_SAMPLES, WindowRun
from voice.queue_figures import QueueFigures
from voice.speaking.port import AudioChunk
from voice.transport.audio_events import AudioEvent, SpeechFrames, TalkspurtEnded
from voice.transport.counters import PacketCounters
from voice.transport.outgoing import FrameSource

if TYPE_CHECKING:
    from bot.channel.port import OnPress, PostContent


# The start of a written scenario, UTC epoch seconds.
EVENING_BEGINS = 1_760_043_600.0
DOWN = "The voice connection is lost. Use /join again."


class ManualClock:
    """Implements `bot.clock.Clock`. Both clocks move only by `advance`."""

    def __init__(self, now: float = EVENING_BEGINS) -> None:
        self._begun = now
        self._monotonic = 0.0
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []

    def now(self) -> float:
        """Return the wall clock, UTC epoch seconds."""
        return self._begun + self._monotonic

    def monotonic(self) -> float:
        """Return seconds since the clock was created."""
        return self._monotonic

    async def sleep(self, seconds: float) -> None:
        """Wait until the clock has advanced by `seconds`. Can be cancelled at any time."""
        wake: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        sleeper = (self._monotonic + seconds, wake)
        self._sleepers.append(sleeper)
        try:
            await wake
        finally:
            self._sleepers.remove(sleeper)

    def advance(self, seconds: float) -> None:
        """Advance both clocks and wake the sleepers that are due."""
        self._monotonic += seconds
        for hour, wake in self._sleepers:
            if hour <= self._monotonic and not wake.done():
                wake.set_result(None)


WORDS_A_SECOND = 2.8
_LOUD, _QUIET = 8_000, 100
_FRAMES_A_WORD = round(1000 / WORDS_A_SECOND / FRAME_MS)


# An utterance of 30 s is cut, and the recogniser would be given the words of both parts for each.
_LONGEST_S = 24.0


def speech_duration_s(words: str) -> float:
    """Return how long it takes to say `words`, in seconds."""
    return min(len(words.split()) / WORDS_A_SECOND, _LONGEST_S)


def make_speech(speaker_id: int, words: str, *, at: float) -> list[AudioEvent]:
    """Return the audio events of somebody who says `words` from `at` on (monotonic seconds)."""
    seconds = speech_duration_s(words)
    pcm = np.full(round(seconds * LISTEN_RATE_HZ), _LOUD, dtype=np.int16)
    return [SpeechFrames(speaker_id, speaker_id, at, pcm), TalkspurtEnded(speaker_id, speaker_id, at + seconds)]


class LoudnessDetector:
    """Implements `voice.listening.vad.SpeechProbability`: loud audio is speech."""

    def score(self, runs: Sequence[WindowRun]) -> list[list[float]]:
        """Return 1.0 for loud windows, 0.0 for others."""
        return [
            [float(np.abs(window).max() > _LOUD / 2) for window in run.pcm.reshape(-1, WINDOW_SAMPLES)] for run in runs
        ]


class ScriptedRecogniser:
    """Implements `voice.asr.port.Recogniser`: returns the words in `saying`, by speaker, in `language`."""

    def __init__(self) -> None:
        self.saying: dict[int, str] = {}
        self.language = "en"

    async def recognise(self, request: RecognitionRequest) -> Recognition:
        assert request.speaker_id is not None, "rooms pass the speaker"
        return Recognition(
            text=self.saying[request.speaker_id],
            language=self.language,
            mean_logprob=-0.2,
            compression_ratio=1.0,
            no_speech_probability=0.0,
            duration_s=duration_s(request.pcm),
            compute_s=0.01,
            language_probability=0.99,
        )

    def confirm(self, speaker_id: int) -> None:
        """Do nothing. See `Recogniser.confirm`."""


class ToneSynthesizer:
    """Implements `voice.speaking.port.Synthesizer`: a quiet tone as long as the words take."""

    async def stream(self, text: str) -> AsyncGenerator[AudioChunk, None]:
        """Yield one piece of audio for each word."""
        for _ in text.split():
            yield AudioChunk(np.full(_FRAMES_A_WORD * DISCORD_FRAME_SAMPLES, _QUIET, dtype=np.int16), DISCORD_RATE_HZ)


class SilentChat:
    """`bot.channel.port.Chat` in which nobody writes anything. `posted`: the bot's own posts."""

    def __init__(self) -> None:
        self.posted: list[str] = []

    async def files(self, *, most: int) -> Sequence[DroppedFile]:
        return ()

    async def fetch(self, file: DroppedFile, *, max_bytes: int) -> bytes:
        """Raise `ChatError`: there are no files."""
        raise ChatError("There are no files in a written scenario.")

    async def post(self, text: str, *, calls_asker: bool = False) -> None:
        self.posted.append(text)


class ManualConnection:
    """A `bot.channel.port.VoiceConnection` that sends frames only when `send` is called. `down_since`: set it, and the
    connection is down.
    """

    removed = False
    end_to_end = True
    privacy_code = ""
    down_since: float | None = None
    unheard = False
    round_trip_s: float | None = None
    queue = QueueFigures("sound", 0, None)

    def __init__(self, source: FrameSource, sink: Callable[[Sequence[AudioEvent]], None]) -> None:
        self._source = source
        self.hear = sink
        self._lost: asyncio.Future[VoiceConnectionError] = asyncio.get_running_loop().create_future()

    @property
    def connected(self) -> bool:
        return self.down_since is None

    def lose(self, reason: str = DOWN, *, removed: bool = False) -> None:
        """Lose the connection for good. `removed`: because somebody took the bot out of the channel."""
        self.removed = removed
        if not self._lost.done():
            self._lost.set_result(VoiceConnectionError(reason))

    async def lost(self) -> VoiceConnectionError:
        """Wait until the connection is lost for good, and return why."""
        return await self._lost

    def counters(self) -> PacketCounters:
        """Return no counts: there are no packets."""
        return PacketCounters()

    def send(self, frames: int) -> int:
        """Send at most `frames` frames; return how many were sent."""
        return sum(self._source.next_frame() is not None for _ in range(frames))


class WrittenChannel:
    """`bot.channel.port.RoomChannel` of a written scenario. `connection`: the connection, once the bot is there."""

    guild_id = 500
    channel_id = 600
    name = "Lounge"
    guild_name = "The Rehearsal"
    occasions: Sequence[str] = ()
    language = ENGLISH
    audible = True
    muted = deafened = False

    def __init__(self, people: Sequence[Person]) -> None:
        """`people`: who is in the channel at first."""
        self.people = list(people)
        self.chat = SilentChat()
        self.connection: ManualConnection | None = None

    def members(self) -> Sequence[Person]:
        return tuple(self.people)

    def enter(self, person: Person) -> None:
        self.people.append(person)

    def leave(self, person: Person) -> None:
        """Remove a person, if present."""
        self.people = [each for each in self.people if each != person]

    async def refresh_rights(self, *, newcomers_only: bool = False) -> None:
        """Do nothing: nobody's rights change."""

    def shared_channels(self) -> frozenset[int]:
        return frozenset({self.channel_id})

    def viewers(self) -> Sequence[Viewer]:
        """Return the people: everybody may read all of a written scenario."""
        here = frozenset({self.channel_id})
        people = (each for each in self.members() if not each.is_bot)
        return [Viewer(str(each.id), self.guild_id, here, here, self.channel_id) for each in people]

    def chat_for(self, asker_id: int | None) -> SilentChat:
        return self.chat

    async def write(self, sentence: Text) -> None:
        """Record a message to the chat."""
        self.chat.posted.append(sentence)

    async def offer_talk(self, sentence: Text) -> None:
        """Record a message to the chat."""
        self.chat.posted.append(sentence)

    async def ask_for_press(self, request: CallRequest, on_press: OnPress) -> CallMessage:
        """Refuse: nobody presses anything in writing."""
        raise ChatError(Text("Nobody can press a button in a written scenario."))

    async def write_notice(self, text: Text, *, asks: bool = False) -> bool:
        """Record the notice like any message."""
        self.chat.posted.append(text)
        return True

    async def open_thread(self, channel_id: int, *, begun: int | None = None) -> Posts:
        raise ChatError("A written scenario has no threads.")

    @property
    def posts(self) -> WrittenChannel:
        return self

    @property
    def id(self) -> int:
        return self.channel_id

    async def begin(self, head: Text | Card = NO_WORDS_YET) -> int:
        """Post it where nobody reads it."""
        return self.channel_id

    async def fill(self, message_id: int, content: PostContent) -> bool:
        """Change what nobody reads."""
        return True

    async def delete(self, message_id: int) -> bool:
        """Delete nothing: there is no message."""
        return True

    async def offer_catch_up(self, person: Person, *, minutes: int) -> bool:
        """Offer nothing: nobody reads the chat of a written scenario."""
        return False

    async def show_listening(self, *, on: bool) -> bool:
        """There is no list of people that could show it."""
        return on

    def refusal(self) -> Text | None:
        return None

    @asynccontextmanager
    async def connect(
        self,
        source: FrameSource,
        listener: ConnectionListener,
    ) -> AsyncIterator[ManualConnection]:
        """Open the connection. Nobody has opted out, and it never changes."""
        self.connection = ManualConnection(source, listener.hear)
        yield self.connection
