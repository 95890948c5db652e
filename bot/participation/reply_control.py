"""What participation needs of the replies of its room: their state, and the means to stop or begin one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from bot.brain.decider import Decision, PendingReply


@dataclass(frozen=True, slots=True)
class ReplyState:
    """The question that waits for an answer, and whether a reply is in progress or somebody is speaking."""

    waiting: PendingReply
    busy: bool


class ReplyControl(Protocol):
    """Controls the room's replies; `bot.room.conversation.conversation.Conversation` implements it.

    Participation and conversation need each other: decisions depend on the reply in progress, and a request for silence
    stops it. So the conversation, which owns the participation, passes itself in.
    """

    @property
    def reply_state(self) -> ReplyState:
        """Return what the replier is doing."""

    @property
    def can_skip(self) -> bool:
        """Return whether the current responder can find that there is nothing to say."""

    def stop_speaking(self) -> None:
        """Stop the reply in progress and discard the waiting question."""

    def drop_derived(self) -> None:
        """Stop speaking, drop prepared replies and results of tools, and end shares of people who may not be heard."""

    def drop_unrecorded(self, person_id: int) -> None:
        """Drop what this person has said or their screen has shown, and what is not recorded yet."""

    def speak_unprompted(self, decision: Decision) -> bool:
        """Begin a remark that nobody asked for. Return False if the session has no turn yet to remark on."""
