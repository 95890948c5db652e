"""The bot's question before it does something: 'Shall I post … in the chat?', and the asker's yes.

The question is made here, not by the model, so it says what the call will do. A call is carried out exactly as it was
asked about, if the whole question was heard, and the same person says yes to it soon, in the next thing that the bot
answers them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bot.brain.tools.orders import says_yes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bot.brain.tools.permission import Asker
    from bot.brain.tools.tool import RoomTool
    from compaction.payload import MessageToolCall

# A yes that comes later is probably about something else.
ANSWER_WITHIN_S = 30.0
# People say yes into the last word of the question.
OVERLAP_S = 1.0
# Longer values are cut in the question; listeners would not follow.
VALUE_CHARS = 100
_INNER_DOT = re.compile(r"(?<=\w)\.(?=\w)")
# What a voice leaves out, and what could end the question early.
_UNSPOKEN = re.compile(r"[^\w\s,'’-]|_")


@dataclass(frozen=True, slots=True)
class ProposedCall:
    """One call that waits for a yes. `german`: whether its question is in German. `heard_at`: when that had been heard,
    monotonic seconds; None before.
    """

    tool: RoomTool
    call: MessageToolCall
    asker_id: int
    question: str
    german: bool
    heard_at: float | None = None


class Proposals:
    """The proposal of one room; one at a time, a newer one replaces it."""

    def __init__(self) -> None:
        self._waiting: ProposedCall | None = None

    def make(self, proposal: ProposedCall) -> None:
        self._waiting = proposal

    def withdraw(self) -> None:
        """Drop the proposal: what its call would do may repeat words that may not be used any more."""
        self._waiting = None

    def on_reply(self, delivered: str, *, ended_at: float) -> None:
        """Note that a reply has ended. `delivered`: the part that was heard, or written instead. A new proposal counts
        only if its whole question is in it.
        """
        waiting = self._waiting
        if waiting is None or waiting.heard_at is not None:
            return
        heard = _letters(waiting.question) in _letters(delivered)
        self._waiting = replace(waiting, heard_at=ended_at) if heard else None

    def waits_for(self, asker: Asker) -> bool:
        """Return whether the next words of `asker` decide on a proposal."""
        return self._waiting is not None and self._waiting.asker_id == asker.user_id

    def settle(self, asker: Asker) -> ProposedCall | None:
        """Return the proposal if `asker` said yes to it in time. Whatever else they said withdraws it."""
        waiting = self._waiting
        if waiting is None or not self.waits_for(asker):
            return None
        self._waiting = None
        if waiting.heard_at is None or asker.spoke_at is None or not says_yes(asker.words, waiting.tool):
            return None
        return waiting if -OVERLAP_S <= asker.spoke_at - waiting.heard_at <= ANSWER_WITHIN_S else None


def question_about(tool: RoomTool, arguments: Mapping[str, object], *, german: bool) -> str:
    """Return the question whether to use `tool`. Raises `ToolError` if `tool` refuses these arguments."""
    if tool.describe is not None:
        action = tool.describe(arguments)
        return f"Soll ich {action.german}?" if german else f"Shall I {action.english}?"
    joint = "und" if german else "and"
    values = f" {joint} ".join(f"{spoken(name)} {spoken(value, german=german)}" for name, value in arguments.items())
    name = spoken(tool.name)
    if german:
        return f"Mit {values}, soll ich {name} ausführen?" if values else f"Soll ich {name} ausführen?"
    return f"With {values}, shall I run {name}?" if values else f"Shall I run {name}?"


def spoken(value: object, *, german: bool = False) -> str:
    """Return a value in words that a voice says in full. A long value is cut, and the question says so."""
    written = "" if value is None else str(value).strip()
    text = _INNER_DOT.sub(" Punkt " if german else " dot ", written)
    text = " ".join(_UNSPOKEN.sub(" ", text).split())
    if not text and written:
        return f"{len(written)} {'Zeichen' if german else 'characters'}"
    if len(text) <= VALUE_CHARS:
        return text or ("nichts" if german else "nothing")
    return text[:VALUE_CHARS].strip() + more_characters(len(text) - VALUE_CHARS, german=german)


def more_characters(left_out: int, *, german: bool = False) -> str:
    """Return how to say that so many characters of a value are left out; '' for none."""
    if not left_out:
        return ""
    return f" und {left_out} weitere Zeichen" if german else f" and {left_out} more characters"


def _letters(text: str) -> str:
    return "".join(letter for letter in text.casefold() if letter.isalnum())
