"""What was said to a speech-to-speech session and is no turn yet: so that nothing is said twice, and nothing stays that
became no turn. Values and bookkeeping only."""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from voice.asr.port import Recognition

if TYPE_CHECKING:
    from voice.audio import Pcm

# Of one person, between two turns; what is more becomes no turn any more.
MOST_WAITING = 8


@dataclass(frozen=True, slots=True)
class RealtimeRecognition(Recognition):
    """What the session heard, and which items of which of its conversations hold it."""

    item_ids: tuple[str, ...] = ()
    conversation: int = 0


def with_items(own: Recognition, item_ids: tuple[str, ...], conversation: int) -> RealtimeRecognition:
    """Return what the room's own recogniser understood of something that these items hold."""
    return RealtimeRecognition(
        text=own.text,
        language=own.language,
        mean_logprob=own.mean_logprob,
        compression_ratio=own.compression_ratio,
        no_speech_probability=own.no_speech_probability,
        duration_s=own.duration_s,
        compute_s=own.compute_s,
        language_probability=own.language_probability,
        item_ids=item_ids,
        conversation=conversation,
    )


@dataclass(frozen=True, slots=True)
class SaidInput:
    """Sound that the model has heard, and the items of which of its conversations that hold it."""

    pcm: Pcm
    item_ids: tuple[str, ...]
    conversation: int


class Inputs:
    """One room's inputs, by who said them."""

    def __init__(self) -> None:
        self._waiting: defaultdict[int | None, deque[SaidInput]] = defaultdict(lambda: deque(maxlen=MOST_WAITING))

    def add(self, speaker_id: int | None, said: SaidInput) -> None:
        """Take note that this was said."""
        self._waiting[speaker_id].append(said)

    def same(self, speaker_id: int | None, pcm: Pcm) -> SaidInput | None:
        """Return what was said last if it is this sound, maybe without a silence before it."""
        waiting = self._waiting[speaker_id]
        if not waiting:
            return None
        last = waiting[-1]
        alike = 0 < len(last.pcm) <= len(pcm) and np.array_equal(pcm[-len(last.pcm) :], last.pcm)
        return last if alike else None

    def before(self, speaker_id: int | None, item_ids: tuple[str, ...]) -> list[SaidInput]:
        """Return what this person said before what has become a turn now, and forget all of it."""
        waiting = self._waiting[speaker_id]
        if not any(said.item_ids == item_ids for said in waiting):
            return []
        gone: list[SaidInput] = []
        while (said := waiting.popleft()).item_ids != item_ids:
            gone.append(said)
        return gone
