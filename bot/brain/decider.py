"""Whether the bot answers what was just said. Pure: everything it looks at is handed in.

It decides alone; who carries a reply out, and how, is `bot.brain.reply`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from bot.brain.wakeword import is_addressed


class Reason(StrEnum):
    """Why the bot answers or stays silent; logged with every decision."""

    WAKE_NAME = "wake_name"
    ALONE_TOGETHER = "alone_together"
    NOT_ADDRESSED = "not_addressed"
    OTHER_BOT = "other_bot"
    NOTHING_SAID = "nothing_said"


@dataclass(frozen=True, slots=True)
class Said:
    """What was said just now, and in what company. `people` counts the channel's members who are not bots."""

    text: str
    by_bot: bool
    people: int
    # A reply that waits for the one being spoken; there is never more than one.
    reply_queued: bool = False


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether to answer, and why. `supersedes` is true when this answer takes the place of the queued one."""

    answer: bool
    reason: Reason
    supersedes: bool = False


def decide(said: Said, *, wake_names: tuple[str, ...]) -> Decision:
    """Return whether the bot answers `said`.

    It never answers a bot, so that two of them cannot talk to each other for ever. A newer turn that deserves
    an answer supersedes the queued one: people have moved on from what they asked before.
    """
    if said.by_bot:
        return Decision(False, Reason.OTHER_BOT)
    if not any(letter.isalnum() for letter in said.text):
        return Decision(False, Reason.NOTHING_SAID)
    if is_addressed(said.text, wake_names):
        return Decision(True, Reason.WAKE_NAME, supersedes=said.reply_queued)
    if said.people == 1:
        return Decision(True, Reason.ALONE_TOGETHER, supersedes=said.reply_queued)
    return Decision(False, Reason.NOT_ADDRESSED)
