"""The protocols of the runner: a bot, the stage on which people are, a recogniser, an observer.

Of the bot the runner knows the events alone: `rehearsal.roomtone` implements `BotUnderTest` and `HeardSoundRecogniser`.
Times are seconds of `time.monotonic()`, which is also the loop's clock, unless a name contains "epoch".
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bot.events import CompactionFailed, CompactionLanded, ReplySpoken, SpeechDropped, UtteranceTranscribed
from compaction.model import Turn
from rehearsal.errors import RehearsalError
from rehearsal.runner.record import ObservationCallback
from rehearsal.script.scenario import PersonStep, SayStep, Scenario, SettingValue


class RunError(RehearsalError):
    """The run cannot continue: the bot did not join, it crashed, or a wait timed out."""


# -- the bot -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DiscordAddresses:
    """The addresses of the local Discord, and the token and ids that the bot uses there."""

    api_base: str
    certificate_path: Path
    token: str
    guild_id: int
    voice_channel_id: int


@dataclass(frozen=True, slots=True)
class BotSetup:
    """Everything the bot needs to run in the local Discord instead of the real one.

    `settings`: dotted key -> value; they override the bot's configuration. `history`: turns to store in the session
    before the bot joins (cursor 0).
    """

    discord: DiscordAddresses
    bot_name: str
    settings: Mapping[str, SettingValue]
    history: tuple[Turn, ...] = ()


class BotUnderTest(Protocol):
    """A bot that was started with a `StartBot`."""

    async def stop(self) -> None:
        """Shut down in order: transcribe the last words, store the state, report the last packet counters. Idempotent.

        Raises the error of a step that fails. *Cancellation*: `kill` ends the rest.
        """

    async def kill(self) -> None:
        """End a bot that did not stop in time: nothing is saved, and no connection is closed in order."""


# Starts the bot, and returns when it can be used. Its argument is called on the running loop's thread, in order, and
# returns at once. If the bot cannot start, it raises any exception, whose text is a plain sentence.
StartBot: TypeAlias = "Callable[[ObservationCallback], Awaitable[None]]"


class BotOfDiscord(BotUnderTest, Protocol):
    """A bot that comes into a local Discord."""

    async def start(self, setup: BotSetup, report: ObservationCallback) -> None:
        """Start the bot, as `StartBot` says, with its commands registered."""


class HeardSoundRecogniser(Protocol):
    """Turns the sound that another participant received into text."""

    async def transcribe(self, pcm: NDArray[np.int16]) -> str:
        """Return the text of mono int16 sound at 16 kHz. The text is empty when the sound contains no speech."""


# -- the Discord and the people in it -------------------------------------------------------------------------


class ReceivedOfBot(Protocol):
    """What the people of a run received of the bot."""

    @property
    def messages(self) -> tuple[str, ...]:
        """Every text that the bot wrote (notices and answers to commands), oldest first."""

    def voiced(self, listener_id: int, since: float, until: float) -> tuple[float, float] | None:
        """Return when this person received the bot's first and last voiced sound between two times, or None."""

    def heard(self, listener_id: int, since: float, until: float) -> NDArray[np.int16]:
        """Return the sound that this person received from the bot (mono int16 at 16 kHz)."""


class Stage(ReceivedOfBot, Protocol):
    """The people and their voice channel. Every method that fails raises `RehearsalError` with a plain sentence."""

    async def enter(self, user_id: int) -> None:
        """Bring a person into the voice channel. Return when the person can speak and hear."""

    async def leave(self, user_id: int) -> None:
        """Take a person out of the voice channel."""

    async def meet(self, user_id: int) -> None:
        """Wait until this person and the bot hear each other."""

    async def act(self, user_id: int, step: PersonStep) -> str:
        """Do what a step says, other than to speak, come and go. Return what did not happen in time, or nothing."""

    def speech_s(self, step: SayStep) -> float:
        """Return how long it takes from the start of this step until its voice ends."""

    async def say(self, user_id: int, step: SayStep) -> tuple[float, float]:
        """Say it as this person, and return when the voice began and ended."""


# -- the observer -----------------------------------------------------------------------------------------------


class RunObserver:
    """Observes a run while it happens. This base class ignores everything; a subclass overrides what it needs.

    The methods are called on the loop's thread. Each must return at once and never raise. `at_s`: seconds since the
    live start.
    """

    def opened(self, scenario: Scenario) -> None:
        """Called when the local Discord is up and the bot is about to start."""

    def happened(self, at_s: float, text: str) -> None:
        """Called for any event other than speech and compaction, such as a command or a join."""

    def spoken(self, at_s: float, speaker: str, reference: str) -> None:
        """Called when somebody begins to say `reference`."""

    def heard(self, at_s: float, speaker: str, heard: UtteranceTranscribed | SpeechDropped, latency_ms: float) -> None:
        """Called when the bot turned an utterance into text or dropped it.

        `latency_ms` counts from the acoustic end.
        """

    def replied(self, at_s: float, reply: ReplySpoken, latency_ms: float | None) -> None:
        """Called when the bot has spoken. `latency_ms` counts from the end of the question to the first sound."""

    def compacted(self, at_s: float, result: CompactionLanded | CompactionFailed) -> None:
        """Called when a compaction was stored or failed."""

    def troubled(self, at_s: float, text: str) -> None:
        """Called when a wait timed out or the bot logged an error."""
