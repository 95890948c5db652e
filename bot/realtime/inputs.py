"""Sounds that were sent to a speech-to-speech session and are no turns yet.

They are remembered so that no sound is sent twice, and a sound that never becomes a turn can be removed. Pure."""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from voice.asr.port import Recognition

if TYPE_CHECKING:
    from voice.audio import Pcm

# Per person. Sounds that are older will become no turn.
MOST_INPUTS = 8


@dataclass(frozen=True, slots=True)
class RealtimeRecognition(Recognition):
    """A recognition, and which items of the session's conversation number `conversation` hold its sound."""

    item_ids: tuple[str, ...] = ()
    conversation: int = 0


def with_items(own: Recognition, item_ids: tuple[str, ...], conversation: int) -> RealtimeRecognition:
    """Return `own`, from the room's own recogniser, with the items that hold its sound."""
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
class RealtimeInput:
    """Sound that the model has heard, and which items of the session's conversation number `conversation` hold it."""

    pcm: Pcm
    item_ids: tuple[str, ...]
    conversation: int


class Inputs:
    """The inputs of one room, by speaker."""

    def __init__(self) -> None:
        self._sent: defaultdict[int | None, deque[RealtimeInput]] = defaultdict(lambda: deque(maxlen=MOST_INPUTS))

    def add(self, speaker_id: int | None, sent: RealtimeInput) -> None:
        """Remember that a sound was sent."""
        self._sent[speaker_id].append(sent)

    def find_same(self, speaker_id: int | None, pcm: Pcm) -> RealtimeInput | None:
        """Return the speaker's last input if it is this sound, or its end."""
        inputs = self._sent[speaker_id]
        if not inputs:
            return None
        last = inputs[-1]
        same = 0 < len(last.pcm) <= len(pcm) and np.array_equal(pcm[-len(last.pcm) :], last.pcm)
        return last if same else None

    def pop_before(self, speaker_id: int | None, item_ids: tuple[str, ...]) -> list[RealtimeInput]:
        """Return the speaker's inputs before the one that has become a turn, and forget them and that one."""
        inputs = self._sent[speaker_id]
        if not any(sent.item_ids == item_ids for sent in inputs):
            return []
        dropped: list[RealtimeInput] = []
        while (sent := inputs.popleft()).item_ids != item_ids:
            dropped.append(sent)
        return dropped
