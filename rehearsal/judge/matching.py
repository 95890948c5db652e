"""Assigns what the bot heard to the lines that were spoken, by speaker and time and never by words.

A match by words would make the recogniser look better than it is. All functions are pure. Times are monotonic seconds
of one clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rehearsal.runner.record import MARGIN_S, SpeechSpan
from rehearsal.words import word_errors

# The pieces of one line follow each other. If two pieces overlap by more than this share of the shorter piece, the line
# was heard twice.
DUPLICATE_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class LineMatch:
    """What the bot heard of one line.

    `pieces`: the indices of the heard pieces, in time order. `transcript`: the text of those pieces; the text of a
    piece that spans two lines is divided between them. `twice`: whether a part of the line was heard twice.
    """

    pieces: tuple[int, ...]
    transcript: str
    twice: bool = False


@dataclass(frozen=True, slots=True)
class UtteranceMatching:
    """One `LineMatch` for each line, in order. `strays`: utterances of a speaker who was silent at that time."""

    matches: tuple[LineMatch, ...]
    strays: tuple[int, ...]


def match_utterances(said: Sequence[SpeechSpan], heard: Sequence[SpeechSpan]) -> UtteranceMatching:
    """Assign each utterance in `heard` to the line that the same speaker said at that time."""
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
        LineMatch(tuple(found), text, _twice([heard[index] for index in found]))
        for found, text in zip(pieces, texts, strict=True)
    )
    return UtteranceMatching(matches, tuple(strays))


def line_of_other_speaker(stray: SpeechSpan, said: Sequence[SpeechSpan]) -> int | None:
    """Return the index of another person's line that contains more than half of the stray, or None."""
    length = max(stray.ended_at - stray.started_at, 1e-6)
    shared = [(span.overlap_s(stray), index) for index, span in enumerate(said) if span.speaker_id != stray.speaker_id]
    best = max(shared, default=(0.0, -1))
    return best[1] if best[0] > length / 2 else None


def _owners(said: Sequence[SpeechSpan], piece: SpeechSpan) -> list[int]:
    """Return the lines that this piece belongs to.

    If the piece covers more than half of each of several lines, it belongs to all of those. Otherwise it belongs to the
    nearest line.
    """
    own = [index for index, span in enumerate(said) if span.speaker_id == piece.speaker_id]
    inside = {index: said[index].overlap_s(piece) for index in own}
    covered = [
        index for index in own if inside[index] > (said[index].ended_at - said[index].started_at) / 2 and inside[index]
    ]
    if len(covered) > 1:
        return covered
    near = {index: shared for index in own if (shared := said[index].overlap_s(piece, margin_s=MARGIN_S)) > 0}
    if not near:
        return []
    return [max(near, key=lambda index: (inside[index], near[index], -index))]


def _twice(pieces: Sequence[SpeechSpan]) -> bool:
    for index, piece in enumerate(pieces):
        for other in pieces[:index]:
            shorter = min(piece.ended_at - piece.started_at, other.ended_at - other.started_at)
            if piece.overlap_s(other) > max(shorter * DUPLICATE_SHARE, 0.0):
                return True
    return False


def _transcripts(said: Sequence[SpeechSpan], heard: Sequence[SpeechSpan], pieces: Sequence[Sequence[int]]) -> list[str]:
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
    """Cut `text` into one part for each reference, at the places that cause the fewest word errors."""
    if len(references) == 1:
        return [text]
    words = text.split()
    first, rest = references[0], " ".join(references[1:])

    def cost(cut: int) -> int:
        return word_errors(first, " ".join(words[:cut])).errors + word_errors(rest, " ".join(words[cut:])).errors

    cut = min(range(len(words) + 1), key=cost)
    return [" ".join(words[:cut]), *_divided(" ".join(words[cut:]), references[1:])]
