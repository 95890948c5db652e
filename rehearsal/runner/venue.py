"""What the stage asks of the place it plays in: a Discord, and people who speak and hear in it.

`rehearsal.runner.local_venue` is the real one; tests play in a simulated one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from rehearsal.script.scenario import NetworkSpec, OptionValue, Scenario


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where the local Discord is, and as whom the bot may enter it."""

    api_base: str
    gateway_url: str
    certificate_path: Path
    token: str
    guild_id: int
    voice_channel_id: int
    text_channel_id: int


@dataclass(frozen=True, slots=True)
class Speech:
    """When somebody said something, in monotonic seconds: the clip, and the voice inside it."""

    started_at: float
    voice_started_at: float
    voice_ended_at: float


class Venue(Protocol):
    """A Discord with people. Every method raises `RehearsalError` with a plain sentence when it cannot."""

    @property
    def addresses(self) -> Addresses:
        """Where the bot finds it."""

    @property
    def messages(self) -> tuple[str, ...]:
        """Every text the bot wrote, notices and answers to commands, oldest first."""

    async def enter(self, user_id: int) -> None:
        """Bring a person into the voice channel; returns when they can speak and hear."""

    async def leave(self, user_id: int) -> None:
        """Take a person out of it."""

    async def meet(self, user_id: int) -> None:
        """Wait until this person and the bot are in one call and can hear each other."""

    async def invoke(self, user_id: int, command: str, options: Mapping[str, OptionValue]) -> None:
        """Use a slash command as this person."""

    async def show(self, user_id: int, picture: Path, *, timeout_s: float) -> bool:
        """Share a picture of this person's screen; return whether the bot noted something of it in time."""

    async def stop_sharing(self, user_id: int) -> None:
        """Let this person stop sharing their screen."""

    def speech_s(self, clip: Path) -> float:
        """Return how long until the voice of this clip ends. Reading it is done before the bot starts."""

    async def say(self, user_id: int, clip: Path) -> Speech:
        """Speak a clip in real time; returns when it is over."""

    def set_network(self, network: NetworkSpec) -> None:
        """Let voice packets fare like this from now on."""

    async def fault(self, name: str, user_id: int | None, options: Mapping[str, float]) -> None:
        """Misbehave once, towards this person or, with None, the bot."""

    def voiced(self, listener_id: int, since: float, until: float) -> tuple[float, float] | None:
        """Return when this person received the bot's first and last voiced sound of a stretch, if any."""

    def heard(self, listener_id: int, since: float, until: float) -> NDArray[np.int16]:
        """Return what this person received of the bot: mono int16 at 16 kHz."""


OpenVenue: TypeAlias = Callable[["Scenario"], AbstractAsyncContextManager[Venue]]
