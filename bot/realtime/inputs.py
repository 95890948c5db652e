"""Sounds that were sent to a speech-to-speech session and are no turns yet. Pure.

They are remembered so that no sound is sent twice, and so that a sound that never becomes a turn can be removed.
"""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

import numpy as np

from voice.asr.port import Recognition
from voice.audio import NO_SOUND

if TYPE_CHECKING:
    from voice.audio import Pcm

# Inputs remembered for each person: many more than wait to become a turn. Older sounds become no turn any more.
MOST_INPUTS = 256


@dataclass(frozen=True, slots=True)
class RealtimeRecognition(Recognition):
    """A recognition, and the items that hold its sound. `conversation`: the number of the session's conversation."""

    item_ids: tuple[str, ...] = ()
    conversation: int = 0


def with_items(own: Recognition, item_ids: tuple[str, ...], conversation: int) -> RealtimeRecognition:
    """Return `own`, from the room's own recogniser, with the items that hold its sound."""
    figures = {field.name: getattr(own, field.name) for field in fields(Recognition)}
    return RealtimeRecognition(**figures, item_ids=item_ids, conversation=conversation)


@dataclass(frozen=True, slots=True)
class RealtimeInput:
    """A sound that the model has heard, and the items that hold it. `conversation`: see `RealtimeRecognition`."""

    pcm: Pcm
    item_ids: tuple[str, ...]
    conversation: int


class Inputs:
    """The inputs of one session by speaker (user id; None: it is not known who spoke), the oldest first."""

    def __init__(self) -> None:
        # Only the last input of each person has its sound, because only that one is compared.
        self._sent: defaultdict[int | None, deque[RealtimeInput]] = defaultdict(lambda: deque(maxlen=MOST_INPUTS))

    def add(self, speaker_id: int | None, sent: RealtimeInput) -> list[RealtimeInput]:
        """Remember an input, and return those of this person that are too old to be remembered any more."""
        inputs = self._sent[speaker_id]
        if inputs:
            inputs[-1] = replace(inputs[-1], pcm=NO_SOUND)
        too_old = [inputs.popleft()] if len(inputs) == MOST_INPUTS else []
        inputs.append(sent)
        return too_old

    def find_same(self, speaker_id: int | None, pcm: Pcm) -> RealtimeInput | None:
        """Return the speaker's last input if `pcm` is the same sound."""
        inputs = self._sent[speaker_id]
        if not inputs:
            return None
        last = inputs[-1]
        return last if len(pcm) and np.array_equal(pcm, last.pcm) else None

    def remembers(self, speaker_id: int | None, item_ids: tuple[str, ...]) -> bool:
        """Return whether the input with these items is no turn yet and was not removed."""
        return any(sent.item_ids == item_ids for sent in self._sent[speaker_id])

    def pop_before(self, speaker_id: int | None, item_ids: tuple[str, ...]) -> list[RealtimeInput]:
        """Remove the speaker's inputs up to the one that became a turn, and return those before it."""
        if not self.remembers(speaker_id, item_ids):
            return []
        inputs = self._sent[speaker_id]
        dropped: list[RealtimeInput] = []
        while (sent := inputs.popleft()).item_ids != item_ids:
            dropped.append(sent)
        return dropped

    def pop_all(self, speaker_id: int | None) -> list[RealtimeInput]:
        """Remove and return all inputs of a person."""
        return list(self._sent.pop(speaker_id, ()))
