"""A tool that a language model may call: its name, what it is told about it, and what is done. Values only."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

# Called with the arguments the model wrote, checked against nothing yet; returns what the model reads.
ToolCall: TypeAlias = Callable[[Mapping[str, object]], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool. `parameters` is its JSON schema. `call` answers misuse with a sentence that says what is wrong, so
    that the model can try again; it raises only what is no business of the model's."""

    name: str
    description: str
    parameters: Mapping[str, object]
    call: ToolCall
