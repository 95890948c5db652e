"""A queue of recognitions that is fair between speakers and serves finished speech before interim speech.

Each speaker's finished utterances stay in order; speakers take turns. An interim (a recognition of unfinished speech)
waits behind all finished speech, and only a speaker's latest interim is kept.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass
from typing import Generic, TypeVar

JobT = TypeVar("JobT")
# None means no particular speaker. All jobs without a speaker share one turn.
Speaker = int | None


@dataclass(slots=True, eq=False)
class Entry(Generic[JobT]):
    """A job in the queue."""

    job: JobT
    speaker: Speaker
    interim: bool


class FairQueue(Generic[JobT]):
    """Holds entries until `next`. It has no limit of its own: see `shed_interim`."""

    def __init__(self) -> None:
        # The first speaker is served next. A served speaker moves to the end.
        self._finals: OrderedDict[Speaker, deque[Entry[JobT]]] = OrderedDict()
        # In the order of arrival.
        self._interims: dict[Speaker, Entry[JobT]] = {}

    def __len__(self) -> int:
        return len(self._interims) + sum(map(len, self._finals.values()))

    def __bool__(self) -> bool:
        """Return whether anything waits. Any thread may ask."""
        return bool(self._interims or self._finals)

    @property
    def holds_finals(self) -> bool:
        """Whether finished speech waits."""
        return bool(self._finals)

    @property
    def interims(self) -> tuple[Entry[JobT], ...]:
        """The interims that wait."""
        return tuple(self._interims.values())

    def add(self, job: JobT, *, speaker: Speaker, interim: bool) -> tuple[Entry[JobT], Entry[JobT] | None]:
        """Add `job`. Returns its entry, and the replaced interim of the same speaker."""
        entry = Entry(job, speaker, interim)
        replaced = self._interims.get(speaker)
        if replaced is not None:
            self.remove(replaced)
        if interim:
            self._interims[speaker] = entry
        else:
            self._finals.setdefault(speaker, deque()).append(entry)
        return entry, replaced

    @property
    def firsts(self) -> list[Entry[JobT]]:
        """Return each speaker's first entry, the next one first: a speaker's stay in order. An interim is none of them
        while finished speech waits.
        """
        return [entries[0] for entries in self._finals.values()] or list(self._interims.values())

    def next(self) -> Entry[JobT] | None:
        """Remove and return the next entry; None if there is none."""
        return next(map(self.take, self.firsts), None)

    def take(self, entry: Entry[JobT]) -> Entry[JobT]:
        """Remove and return one of `firsts`."""
        self.remove(entry)
        if not entry.interim and entry.speaker in self._finals:
            self._finals.move_to_end(entry.speaker)
        return entry

    def shed_interim(self, *, of: Speaker) -> Entry[JobT] | None:
        """Remove and return the interim of speaker `of`, who has newer speech, or else the oldest interim.

        Returns None if only finished speech waits.
        """
        oldest = next(iter(self._interims.values()), None)
        shed = self._interims.get(of, oldest)
        if shed is not None:
            self.remove(shed)
        return shed

    def confirm(self, speaker: Speaker) -> None:
        """Turn the interim of `speaker` into finished speech, if there is one."""
        if (entry := self._interims.pop(speaker, None)) is not None:
            entry.interim = False
            self._finals.setdefault(speaker, deque()).append(entry)

    def remove(self, entry: Entry[JobT]) -> bool:
        if entry.interim:
            if self._interims.get(entry.speaker) is not entry:
                return False
            del self._interims[entry.speaker]
        else:
            entries = self._finals.get(entry.speaker)
            if entries is None or entry not in entries:
                return False
            entries.remove(entry)
            if not entries:
                del self._finals[entry.speaker]
        return True
