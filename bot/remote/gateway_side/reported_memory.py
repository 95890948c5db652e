"""What the dashboard shows of the memory of a room in another process, as the room last told it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, overload

from bot import events
from bot.dashboard.shown_memory import MOST_TURNS
from bot.dashboard.visible import SpeechFilter
from bot.remote.messages.room_messages import MemoryLook
from compaction.model import Mode

if TYPE_CHECKING:
    from collections.abc import Callable

    from compaction.model import Turn


@dataclass(frozen=True, slots=True)
class ReportedTurn:
    """A turn of which only the number is known."""

    seq: int


class ReportedWindow(Sequence[ReportedTurn]):
    """`count` turns from number `first` on. They are made when somebody looks: a room may tell any number."""

    def __init__(self, first: int, count: int) -> None:
        self._numbers = range(first, first + max(0, min(count, MOST_TURNS)))

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, index: int) -> ReportedTurn: ...
    @overload
    def __getitem__(self, index: slice) -> list[ReportedTurn]: ...
    def __getitem__(self, index: int | slice) -> ReportedTurn | list[ReportedTurn]:
        if isinstance(index, slice):
            return [ReportedTurn(seq) for seq in self._numbers[index]]
        return ReportedTurn(self._numbers[index])


@dataclass(frozen=True, slots=True)
class ReportedSummary:
    """A summary of which only the words are known."""

    text: str


class ReportedMemory:
    """Implements `bot.dashboard.shown_memory.ShownMemory`.

    `withheld`: returns the ids of the people of the server who opted out. `speakers`: the ids of everybody who is known
    to have spoken or shared a screen in the session, or may be quoted there.
    """

    def __init__(self) -> None:
        self.withheld: Callable[[], frozenset[str]] = frozenset
        self.speakers: set[str] = set()
        self._told = MemoryLook(
            mode=Mode.SUMMARY,
            total_turns=0,
            cursor=0,
            window_from=0,
            unfolded=0,
            summary=None,
            external_changes=0,
        )

    def tell(self, look: MemoryLook) -> None:
        """Take over what the room has told."""
        self._told = look

    def hear(self, event: events.Event) -> None:
        """Take note of whom an event of the room is about, before anything is shown of it."""
        match event:
            case events.TurnRecorded():
                self.speakers.update(part.speaker_id for part in event.turn.parts)
            case events.ScreenNoted() if event.note.person_id is not None:
                self.speakers.add(event.note.person_id)
            case _:
                pass

    @property
    def mode(self) -> Mode:
        return self._told.mode

    @property
    def total_turns(self) -> int:
        return self._told.total_turns

    @property
    def cursor(self) -> int:
        return self._told.cursor

    @property
    def window(self) -> ReportedWindow:
        return ReportedWindow(self._told.window_from, self._told.unfolded)

    @property
    def summary(self) -> ReportedSummary | None:
        return None if self._told.summary is None else ReportedSummary(self._told.summary)

    @property
    def external_changes(self) -> int:
        return self._told.external_changes

    def allowed_part(self, turn: Turn) -> Turn:
        speakers = self.speakers | {part.speaker_id for part in turn.parts}
        return SpeechFilter.of(self.withheld(), speakers).turn(turn)
