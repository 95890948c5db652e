"""What is asked of a room by who starts and ends it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import asyncio

    from bot.channel.port import MembershipChange, TypedMessage, UnfinishedWords
    from bot.health import HealthFault
    from bot.models.voices import EmbeddedVoice
    from bot.texts.text import Text


class SupervisedRoom(Protocol):
    """Implemented by `bot.room.room.Room`."""

    @property
    def opened(self) -> asyncio.Event:
        """Set when the bot has joined the channel and receives its sound."""

    @property
    def ending(self) -> str | None:
        """Return why the room is ending (one word), by itself or because it was closed; None: it is not. A room that is
        handed over is not.
        """

    @property
    def left_session_open(self) -> bool:
        """Return whether the room has ended in order, but could not store the end of its session."""

    async def run(self) -> str:
        """Run until closed; return the reason (one word). Any error is a crash."""

    def close(self, reason: str) -> None:
        """Ask the room to end in order. `run` then returns `reason`."""

    def is_busy(self) -> bool:
        """Return whether somebody speaks there, or the bot answers."""

    def on_membership(self, change: MembershipChange) -> None:
        """Record that somebody came or went."""

    async def take_typed(self, message: TypedMessage) -> Text | None:
        """Answer what somebody has typed to the bot, in writing and later; return why it does not, or None."""

    def status(self) -> Text:
        """Return the room's state in plain sentences."""

    def unfinished(self) -> tuple[UnfinishedWords, ...]:
        """Return what people in the room are saying, as far as it is recognised; the latest first."""

    async def play_sample(self, voice: EmbeddedVoice) -> Text | None:
        """Say the voice's sample; return why it was not said, or None. Raises `SynthesisError`."""

    def faults(self) -> list[HealthFault]:
        """Return why the bot hears nobody in the room, or nobody there hears the bot."""
