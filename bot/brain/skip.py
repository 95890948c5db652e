"""The model's right to say nothing: how it is told of it, and how its SKIP is kept from ever being spoken.

Only where the decider was in doubt is the model told. Everything that could be the beginning of SKIP is held back
until it is more than that, so that not a syllable of it reaches the voice.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from bot.brain.decider import Reason

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable

SKIP = "SKIP"
_HOW = f"If there is nothing you should say, answer with the single word {SKIP} and nothing else; nobody hears it."
_WHY = {
    Reason.ENGAGED: "Nobody said your name in the last turn, but you have just spoken with this person. Answer only if "
    "they go on talking to you; people also turn back to each other.",
    Reason.ROOM_QUESTION: "Nobody said your name in the last turn: it is a question to the room. Answer only if nobody "
    "in particular is asked and you know something that helps.",
    Reason.SCREEN: "Nobody said anything to you. Something on a shared screen has changed; say a sentence only if "
    "it is really worth interrupting for.",
    Reason.QUIET_ROOM: "Nobody has said anything for a while. If something said earlier is left open or there is a "
    "thought worth sharing, say one short sentence. The last turn is long past: do not answer it.",
}
# Models put quotes, stars or brackets around a single word.
_WRAPPING = " \t\r\n\"'`*_[]()<>“”‘’"
_ENDINGS = _WRAPPING + ".!…,:;-–—"
# An upper-case beginning of the word at the end of what has come so far.
_TAIL = re.compile(r"(?<![A-Za-z])(?:S|SK|SKI|SKIP)[^A-Za-z0-9]*$")
# What some models think to themselves first; nobody hears it. The last of it may be the beginning of a tag.
_NAMES = ("think", "thinking", "thought", "reasoning", "scratchpad")
_THOUGHT = re.compile(rf"\s*[<◁](?P<name>{'|'.join(_NAMES)})[>▷].*?[<◁]/(?P=name)\s*[>▷]", re.IGNORECASE | re.DOTALL)
_OPENING = re.compile(r"\s*[<◁](?P<name>[a-z]*)(?P<end>[>▷]?)", re.IGNORECASE)


def skip_instruction(reason: Reason) -> str:
    """Return what the model is told besides when it may skip; empty where it has to answer."""
    return f"{_WHY[reason]} {_HOW}" if reason in _WHY else ""


def is_skip(text: str) -> bool:
    """Return whether an answer says that there is nothing to say."""
    return text.strip(_ENDINGS).casefold() == SKIP.casefold()


async def drop_skipped(stream: AsyncIterator[str], *, on_skip: Callable[[], None]) -> AsyncGenerator[str, None]:
    """Yield an answer's pieces; none of them, and call `on_skip`, if it is SKIP or begins with it, or is empty.

    What stands before a SKIP at the very end is yielded. Half of the word, from a model that was cut short, is the
    whole of it. What a model thinks to itself first is no part of its answer and is left out.
    """
    held, begun = "", False
    async for piece in stream:
        held += piece
        if not begun:
            while (thought := _THOUGHT.match(held)) is not None:
                held = held[thought.end() :]
            if _is_thinking(held) or may_become_skip(held):
                continue
            if begins_with_skip(held):
                on_skip()
                return
            begun = True
        tail = _TAIL.search(held)
        ready, held = (held, "") if tail is None else (held[: tail.start()], held[tail.start() :])
        if ready:
            yield ready
    if not begun:
        on_skip()
    elif held and not held.startswith(SKIP[:2]):
        yield held


def _is_thinking(text: str) -> bool:
    """Return whether `text` is a thought that goes on, or may be the beginning of one."""
    opening = _OPENING.match(text)
    if opening is None:
        return False
    name = opening["name"].lower()
    if opening["end"]:
        return name in _NAMES
    return opening.end() == len(text) and any(each.startswith(name) for each in _NAMES)


def may_become_skip(text: str) -> bool:
    """Return whether all of `text` so far could be SKIP, or its beginning, in whatever case."""
    bare = text.lstrip(_WRAPPING)
    word = bare.rstrip(_ENDINGS).casefold()
    return SKIP.casefold().startswith(word) and (word == SKIP.casefold() or bare.casefold() == word)


def begins_with_skip(text: str) -> bool:
    """Return whether `text` is SKIP with something after it: 'SKIP. They are talking to each other.'"""
    bare = text.lstrip(_WRAPPING)
    return bare.startswith(SKIP) and not bare[len(SKIP) : len(SKIP) + 1].isalnum()
