"""SKIP, the word with which a model says nothing: the prompt that offers it, and the filter that keeps it unspoken.

A reply offers SKIP only if the decider was not sure. The filter holds back every possible beginning of SKIP, so that no
syllable of it reaches the voice.
"""

from __future__ import annotations

import re
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.brain.decider import Reason
from voice.realtime.port import ReplyPiece, ReplyResumed
from voice.speaking.hidden_passages import HiddenPassages

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Sequence

    from bot.brain.reply import Reply

SKIP = "SKIP"
_SAY_SKIP = f"answer with the single word {SKIP} and nothing else, which nobody hears"
# These stand beside the question, so small models must not find SKIP alone at the end of them.
_SKIP_REASONS = {
    Reason.ENGAGED: "Nobody said your name in the last turn, but you have just spoken with this person. People also "
    f"turn back to each other: if the last turn is not for you, {_SAY_SKIP}. If they go on with you, answer them.",
    # With 'if not, SKIP; otherwise answer' in this order, Qwen2.5-Coder 1.5B did not tell the room what it knew.
    Reason.ROOM_QUESTION: "Nobody said your name in the last turn: it is a question to the room. Answer only if nobody "
    f"in particular is asked and you know something that helps. If there is nothing you should say, {_SAY_SKIP}.",
    Reason.SCREEN: "Nobody said anything to you. Something on a shared screen has changed. Unless it is really worth "
    f"interrupting for, {_SAY_SKIP}. If it is, say one sentence about it.",
    Reason.QUIET_ROOM: "Nobody has said anything for a while. The last turn is long past: do not answer it. If "
    "something said earlier is left open or there is a thought worth sharing, say one short sentence. If not, "
    f"{_SAY_SKIP}.",
}
# Models put quotes, stars or brackets around a single word.
_WRAPPING = " \t\r\n\"'`*_[]()<>“”‘’"
_PUNCTUATION = _WRAPPING + ".!…,:;-–—"
# An upper-case beginning of SKIP at the end of the text so far.
_TAIL = re.compile(r"(?<![A-Za-z])(?:S|SK|SKI|SKIP)[^A-Za-z0-9]*$")
# What may go on as the tag of a passage that is not spoken.
_TAG_BEGUN = re.compile(r"\s*[<◁]/?\w*")


def skip_instruction(reason: Reason) -> str:
    """Return the prompt that lets the model skip a reply with this reason; empty if it must answer."""
    return _SKIP_REASONS.get(reason, "")


async def drop_skipped(stream: AsyncIterator[str], reply: Reply) -> AsyncGenerator[str, None]:
    """Yield the pieces of an answer. If it is empty, is SKIP or begins with SKIP, yield nothing and skip `reply`.

    If an answer ends in SKIP, the text before it is yielded. Half of the word, from a model that was cut off, counts as
    the whole. What is never spoken, such as reasoning in tags, is passed on, and counts as nothing before SKIP.
    """
    held, started = "", False
    async for piece in stream:
        # A whole piece stays what it is: `WithoutModel` for one that no model wrote.
        held = held + piece if held else piece
        if not started:
            seen = HiddenPassages().visible(held)
            if _TAG_BEGUN.fullmatch(seen) or may_become_skip(seen):
                continue
            if begins_with_skip(seen):
                reply.skip()
                return
            started = True
        tail = _TAIL.search(held)
        ready, held = (held, "") if tail is None else (held[: tail.start()], held[tail.start() :])
        if ready:
            yield ready
    if not started:
        reply.skip()
    elif held and not held.startswith(SKIP[:2]):
        yield held


def may_become_skip(text: str) -> bool:
    """Return whether `text` so far could still become SKIP, in any case."""
    bare = text.lstrip(_PUNCTUATION)
    word = bare.rstrip(_PUNCTUATION).casefold()
    return SKIP.casefold().startswith(word) and (word == SKIP.casefold() or bare.casefold() == word)


def begins_with_skip(text: str) -> bool:
    """Return whether `text` is SKIP followed by something: 'SKIP. They are talking to each other.'"""
    bare = text.lstrip(_PUNCTUATION)
    return bare.startswith(SKIP) and not bare[len(SKIP) : len(SKIP) + 1].isalnum()


@dataclass(frozen=True, slots=True)
class SpokenSkip:
    """What came of a spoken reply that is not heard."""

    pieces: Sequence[ReplyPiece | ReplyResumed]


async def unless_spoken_skip(
    pieces: AsyncGenerator[ReplyPiece | ReplyResumed, None],
) -> AsyncGenerator[ReplyPiece | ReplyResumed | SpokenSkip, None]:
    """Yield a spoken reply's pieces. If it says SKIP, or is empty, yield only that.

    Sound arrives with its words or after them. Both are held back until the words are more than the beginning of SKIP,
    which delays a reply by its first word at most. Sound without any words is yielded late: an endpoint need not
    transcribe its replies. *Ownership*: closes `pieces`.
    """
    held: list[ReplyPiece | ReplyResumed] = []
    words, is_reply = "", False
    async with aclosing(pieces):
        async for piece in pieces:
            held.append(piece)
            words = piece.said if isinstance(piece, ReplyResumed) else words + piece.words
            if not may_become_skip(words):
                is_reply = True
                break
        sounds = any(isinstance(piece, ReplyPiece) and piece.pcm is not None for piece in held)
        if begins_with_skip(words) if is_reply else bool(words.strip()) or not sounds:
            yield SpokenSkip(held)
            return
        for piece in held:
            yield piece
        async for piece in pieces:
            yield piece
