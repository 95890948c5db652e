"""Which utterance of the bot's belongs to which thing that was said: by speaker and time, never by words.

Words would flatter the recogniser. All functions are pure; times are monotonic seconds of one clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rehearsal.judge.wer import word_errors

if TYPE_CHECKING:
    from collections.abc import Sequence

# Bounds from energy (ours) and from a voice activity detector (the bot's) differ by a soft first or last sound,
# and the network adds up to a jitter buffer.
MARGIN_S = 0.5
# Two pieces of one speech lie side by side; pieces of one speech that cover each other by more than this share
# of the shorter were heard twice.
TWICE_SHARE = 0.5
# An utterance that ends this much before the speech does may be followed by another piece.
TAIL_S = 1.2


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of one speaker's time with its words."""

    speaker_id: int
    text: str
    started_at: float
    ended_at: float


@dataclass(frozen=True, slots=True)
class Match:
    """One thing that was said: the indices of its pieces in time order, and whether a piece came twice.

    `transcript` is what those pieces say of it: all of their text, unless a piece spans two things that were
    said, which share it then.
    """

    pieces: tuple[int, ...]
    transcript: str
    twice: bool = False


@dataclass(frozen=True, slots=True)
class Matching:
    """One `Match` for each thing that was said, in its order; `strays` were heard when that person was silent."""

    matches: tuple[Match, ...]
    strays: tuple[int, ...]


def match(said: Sequence[Span], heard: Sequence[Span]) -> Matching:
    """Assign each of `heard` to what its speaker said at that time."""
    pieces: list[list[int]] = [[] for _ in said]
    strays = []
    for index, piece in sorted(enumerate(heard), key=lambda item: (item[1].started_at, item[0])):
        owners = _owners(said, piece)
        for owner in owners:
            pieces[owner].append(index)
        if not owners:
            strays.append(index)
    texts = _transcripts(said, heard, pieces)
    matches = tuple(
        Match(tuple(found), text, _twice([heard[index] for index in found]))
        for found, text in zip(pieces, texts, strict=True)
    )
    return Matching(matches, tuple(strays))


def complete(said: Span, heard: Sequence[Span]) -> bool:
    """Return whether what was heard reaches the end of this speech, so that no further piece is awaited."""
    return any(
        piece.speaker_id == said.speaker_id
        and _shared_s(said, piece, MARGIN_S) > 0
        and piece.ended_at >= min(said.ended_at - TAIL_S, said.started_at + (said.ended_at - said.started_at) / 2)
        for piece in heard
    )


def mistaken_for(stray: Span, said: Sequence[Span]) -> int | None:
    """Return which thing another person said at that time, if the stray lies mostly inside it."""
    length = max(stray.ended_at - stray.started_at, 1e-6)
    shared = [
        (_shared_s(span, stray, 0.0), index) for index, span in enumerate(said) if span.speaker_id != stray.speaker_id
    ]
    best = max(shared, default=(0.0, -1))
    return best[1] if best[0] > length / 2 else None


def _owners(said: Sequence[Span], piece: Span) -> list[int]:
    """Return what this piece belongs to: the speech it shares most time with, and any it covers mostly."""
    own = [index for index, span in enumerate(said) if span.speaker_id == piece.speaker_id]
    inside = {index: _shared_s(said[index], piece, 0.0) for index in own}
    covered = [
        index for index in own if inside[index] > (said[index].ended_at - said[index].started_at) / 2 and inside[index]
    ]
    if len(covered) > 1:
        return covered
    near = {index: shared for index in own if (shared := _shared_s(said[index], piece, MARGIN_S)) > 0}
    if not near:
        return []
    return [max(near, key=lambda index: (inside[index], near[index], -index))]


def _shared_s(one: Span, other: Span, margin_s: float) -> float:
    """Return the time both cover, `one` widened by the margin on each side; negative when apart."""
    return min(one.ended_at + margin_s, other.ended_at) - max(one.started_at - margin_s, other.started_at)


def _twice(pieces: Sequence[Span]) -> bool:
    for index, piece in enumerate(pieces):
        for other in pieces[:index]:
            shorter = min(piece.ended_at - piece.started_at, other.ended_at - other.started_at)
            if _shared_s(piece, other, 0.0) > max(shorter * TWICE_SHARE, 0.0):
                return True
    return False


def _transcripts(said: Sequence[Span], heard: Sequence[Span], pieces: Sequence[Sequence[int]]) -> list[str]:
    texts: list[list[str]] = [[] for _ in said]
    owners: dict[int, list[int]] = {}
    for owner, found in enumerate(pieces):
        for index in found:
            owners.setdefault(index, []).append(owner)
    for index in sorted(owners, key=lambda index: (heard[index].started_at, index)):
        sharing = sorted(owners[index], key=lambda owner: said[owner].started_at)
        for owner, text in zip(sharing, _divided(heard[index].text, [said[o].text for o in sharing]), strict=True):
            texts[owner].append(text.strip())
    return [" ".join(filter(None, parts)) for parts in texts]


def _divided(text: str, references: Sequence[str]) -> list[str]:
    """Cut `text` into one part for each reference, where the cuts cost the fewest word errors."""
    if len(references) == 1:
        return [text]
    words = text.split()
    first, rest = references[0], " ".join(references[1:])

    def cost(cut: int) -> int:
        return word_errors(first, " ".join(words[:cut])).errors + word_errors(rest, " ".join(words[cut:])).errors

    cut = min(range(len(words) + 1), key=cost)
    return [" ".join(words[:cut]), *_divided(" ".join(words[cut:]), references[1:])]
