"""A bot's answers to one interaction, for those who used the command or pressed the button."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from rehearsal.discord.guild.payloads import Json
from rehearsal.discord.guild.state import buttons_of
from rehearsal.errors import LocalDiscordError
from rehearsal.waiting import Changes

# How long to wait for a text after a deferred answer.
REPLY_TIMEOUT_S = 30.0

ReplyKind: TypeAlias = Literal["initial", "followup", "edit"]


@dataclass(frozen=True, slots=True)
class InteractionReply:
    """One answer of a bot. An edit counts as a reply of its own. `content`: as the person reads it."""

    kind: ReplyKind
    content: str
    ephemeral: bool
    payload: Json = field(repr=False)


@dataclass(slots=True)
class InteractionResult:
    """A bot's answers to one command. Replies are added while the bot sends them."""

    id: int
    command: str
    user_id: int
    deferred: bool = False
    replies: list[InteractionReply] = field(default_factory=list)
    # What the bot suggests for an option that the person is typing.
    choices: list[Json] = field(default_factory=list)
    # The window that the bot has opened, and the message below which somebody pressed.
    window: Json | None = None
    source: Json | None = field(default=None, repr=False)
    _changes: Changes = field(default_factory=Changes, repr=False)

    @property
    def content(self) -> str:
        """The text of the last reply, or '' when there is none."""
        return self.replies[-1].content if self.replies else ""

    async def until(
        self, condition: Callable[[InteractionResult], bool], *, timeout_s: float = REPLY_TIMEOUT_S
    ) -> None:
        """Wait until `condition` holds. Raises `LocalDiscordError` after `timeout_s`."""
        if not await self._changes.until(lambda: condition(self), timeout_s=timeout_s):
            raise LocalDiscordError(
                f"/{self.command} had {len(self.replies)} replies within {timeout_s:g} s, and more were expected. "
                "The bot's log shows what it did."
            )

    def note(self, reply: InteractionReply | None) -> None:
        """Add a reply, and wake the tasks that wait for a change. `reply` is None when something else has changed."""
        if reply is not None:
            self.replies.append(reply)
        self._changes.tell()

    def as_dict(self) -> Json:
        """Return the result as the control API sends it."""
        replies = [
            {
                "kind": reply.kind,
                "message_id": reply.payload["id"],
                "content": reply.content,
                "ephemeral": reply.ephemeral,
                "embeds": reply.payload.get("embeds", []),
                "components": reply.payload.get("components", []),
                "buttons": buttons_of(reply.payload),
            }
            for reply in self.replies
        ]
        return {"command": self.command, "deferred": self.deferred, "replies": replies}
