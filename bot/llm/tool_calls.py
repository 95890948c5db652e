"""Streamed calls of tools, put together out of their pieces. Pure; servers differ in how they cut them.

OpenAI sends id and name once and then the arguments bit by bit, told apart by an index. Others repeat id and name in
each piece, give every call the index 0, or no id at all; all of that is understood.
"""

from __future__ import annotations

from dataclasses import dataclass

from compaction.budget.messages import ToolCall

# What no honest answer needs; beyond it a model has run wild.
MOST_CALLS = 8
MOST_NAME_CHARS = 128
MOST_ARGUMENT_CHARS = 20_000


class MalformedCallsError(ValueError):
    """What was streamed as calls of tools is none."""


@dataclass(frozen=True, slots=True)
class CallPiece:
    """One streamed piece of one call; what it doesn't hold is empty."""

    index: int = 0
    id: str = ""
    name: str = ""
    arguments: str = ""


@dataclass(slots=True)
class _Growing:
    index: int
    id: str
    name: str = ""
    arguments: str = ""


class StreamedCalls:
    """The calls of one answer. Feed it every piece, then ask for the `calls`."""

    def __init__(self) -> None:
        self._growing: list[_Growing] = []

    def feed(self, piece: CallPiece) -> None:
        """Take one piece in. Raises `MalformedCallsError`."""
        call = next((each for each in reversed(self._growing) if each.index == piece.index), None)
        if call is None or (piece.id and call.id and piece.id != call.id):
            if len(self._growing) == MOST_CALLS:
                raise MalformedCallsError(f"more than {MOST_CALLS} calls of tools at once")
            call = _Growing(piece.index, piece.id)
            self._growing.append(call)
        call.id = call.id or piece.id
        if piece.name != call.name:
            call.name += piece.name
        call.arguments += piece.arguments
        if len(call.name) > MOST_NAME_CHARS or len(call.arguments) > MOST_ARGUMENT_CHARS:
            raise MalformedCallsError("a call of a tool that is too long")

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """Return the calls, in order, each with a name and an id of its own. Raises `MalformedCallsError`."""
        if any(not call.name.strip() for call in self._growing):
            raise MalformedCallsError("a call of a tool without its name")
        found: list[ToolCall] = []
        taken: set[str] = set()
        for number, call in enumerate(self._growing):
            own = call.id if call.id and call.id not in taken else f"call_{number}_{call.name.strip()}"
            taken.add(own)
            found.append(ToolCall(own, call.name.strip(), call.arguments or "{}"))
        return tuple(found)
