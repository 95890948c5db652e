"""What is true of a simulated evening, whatever the bot believes: who is there and may be heard, what each word is and
whose, what has failed; and what the bot has shown.

Everything that the bot hears, sends to a model, says or posts passes through here, and is compared at once with what
may be used of people's words. The first rule that is broken ends the evening.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from weakref import ref

from bot import events
from bot.channel.port import Person
from bot.dropped_sounds import OPTED_OUT, OVERLOADED, RECOGNISER_FAILED
from bot.room.room import Room
from bot.store.forgettings import KEY_FILE
from compaction.model import Note, Turn, TurnKind
from compaction.session import SessionTimeline
from compaction.summary.port import MAX_SUMMARY_CHARS
from compaction.window import BATCH_SIZE, RECENT_WINDOW
from rehearsal.roomtone.evenings.plan import NAMES, Fault, Plan
from rehearsal.roomtone.evenings.virtual_time import LoopClock
from rehearsal.roomtone.written.scripted_model import WrittenModel

GUILD_ID: Final = 500
# Sound and speech are looked at ten times a second, in place of fifty.
GRID_S: Final = 0.2
_KEY_BYTES: Final = 32
# The time of the loop when an evening begins.
_ZERO_S: Final = 1_000.0
# What a fault does, it may do to what began so long before or after it.
AFTERMATH_S: Final = 90.0
_CONSONANTS, _VOWELS = "bdfgklmnprstvz", "aeiou"
# Words that the search index leaves as they are end so.
_LAST_VOWELS = "ao"
_SPREAD = 104_729
_WORD = re.compile(r"[a-z]{8}")
_SAID = frozenset({TurnKind.SPEECH, TurnKind.EFFECT})
_DISTURBING: Final = (Fault.EARS_ERROR, Fault.EARS_HANG, Fault.EARS_CRASH, Fault.LINE)
_SPOKEN = frozenset({events.ReplyOutcome.SPOKEN, events.ReplyOutcome.INTERRUPTED})
_EXCUSED_BY: Final = {
    RECOGNISER_FAILED: (Fault.EARS_ERROR, Fault.EARS_HANG, Fault.EARS_CRASH),
    OVERLOADED: (Fault.EARS_ERROR, Fault.EARS_HANG, Fault.EARS_CRASH, Fault.DISK_HANG, Fault.DISK_ERROR),
}


class RuleBrokenError(Exception):
    """The bot has broken a rule of COMPACTION or TRUST. The message says which, and where."""


@dataclass(slots=True, eq=False)
class Line:
    """What somebody says, types or shows. `words`: as far as they were said. `is_excused`: something happened for which
    it may be missing.
    """

    person: int
    kind: str
    words: list[str] = field(default_factory=list)
    is_excused: bool = False


@dataclass(slots=True)
class Withdrawal:
    """When a person's words were withdrawn, and how many turns the session had then."""

    at: float
    session: str
    total_turns: int


def make_word(number: int) -> str:
    """Return a word that nobody else says: eight letters."""
    number = number * _SPREAD
    vowels = [_VOWELS, _VOWELS, _VOWELS, _LAST_VOWELS]
    word = ""
    for each in vowels:
        number, consonant = divmod(number, len(_CONSONANTS))
        number, vowel = divmod(number, len(each))
        word += _CONSONANTS[consonant] + each[vowel]
    return word


class World:
    """One evening. `folder`: of the database. `model`: of the process that runs, if one does.

    `log`: what happened, a line each; what differs between runs of a seed is a defect.
    """

    def __init__(self, plan: Plan, folder: Path) -> None:
        self.plan = plan
        self.folder = folder
        # It is made by chance otherwise, and so would be the order of what was forgotten.
        (folder / KEY_FILE).write_bytes(bytes(_KEY_BYTES))
        self.clock = LoopClock(grid_s=GRID_S)
        self._loop = asyncio.get_running_loop()
        self.people = {number: Person(number, name, is_bot=False) for number, name in enumerate(NAMES, 1)}
        self.present = [self.people[each] for each in plan.present]
        self.out: set[int] = set()
        self.agreed: set[int] = set()
        self.silenced = False
        # Nothing has any effect: the process that runs is being killed.
        self.is_halted = False
        self.faults: set[Fault] = set()
        self.mended = asyncio.Event()
        self.model: WrittenModel | None = None
        self.rooms: list[ref[Room]] = []
        self.notes_in_folds: set[str] = set()
        self.lines: list[Line] = []
        self.spoken_words: list[str] = []
        self.line_of: dict[str, Line] = {}
        self.said_at: dict[str, float] = {}
        # The session and number of the turn of each word; of a note, its id in place of the number.
        self.recorded: dict[str, tuple[str, int | str]] = {}
        self.may_be_lost: set[str] = set()
        self.forgotten: set[str] = set()
        self.withdrawn: dict[int, Withdrawal] = {}
        self.message_ids = itertools.count(1)
        self.renewed_posts: dict[int, str] = {}
        self.log: list[str] = []
        self.broken: list[str] = []
        # By session and turn: how each reply to it has ended; and how many results of pressed calls are told besides.
        self.replies: defaultdict[tuple[str, int], list[events.ReplyOutcome]] = defaultdict(list)
        self.results_told = 0
        self.turns: dict[tuple[str, int], list[str]] = {}
        self._sessions: dict[str, str] = {}
        self._cursors: dict[str, int] = {}
        self._fault_over: dict[Fault, float] = {}
        self._last_said: Counter[int] = Counter()
        self._is_closed = False

    @property
    def timeline(self) -> SessionTimeline | None:
        """Return the timeline of the last session of the process that runs."""
        return None if self.model is None else self.model.timeline

    # -- what happens --------------------------------------------------------------------------------------------

    def note(self, what: str, *details: object) -> None:
        """Add a line to the log."""
        if self.is_halted:
            return
        text = " ".join(map(str, details))
        for session, name in self._sessions.items():
            text = text.replace(session, name)
        self.log.append(f"{self._loop.time() - _ZERO_S:9.3f} {what} {text}".rstrip())

    def breaks(self, rule: str) -> None:
        """Note that the bot has broken a rule."""
        if self.is_halted:
            return
        self.note("BROKEN", rule)
        self.broken.append(rule)

    def has(self, *faults: Fault, within_s: float = 0.0) -> bool:
        """Return whether one of these faults lasts, or was over less than `within_s` ago."""
        now = self.clock.monotonic()
        return any(each in self.faults or now - self._fault_over.get(each, -1e9) < within_s for each in faults)

    def begin_fault(self, fault: Fault) -> None:
        self.faults.add(fault)
        self.mended.clear()
        self.excuse_unrecorded()

    def end_fault(self, fault: Fault) -> None:
        self.faults.discard(fault)
        self._fault_over[fault] = self.clock.monotonic()
        self.mended.set()

    async def suffer(self, hang: Fault, failure: Fault, error: Exception) -> None:
        """Wait as long as the one fault lasts. Raises `error` if the other does."""
        while hang in self.faults:
            self.mended.clear()
            await self.mended.wait()
        if failure in self.faults:
            raise error

    def new_line(self, person: int, kind: str) -> Line:
        line = Line(person, kind, is_excused=self.has(*_DISTURBING))
        self.lines.append(line)
        return line

    def new_word(self, line: Line) -> str:
        """Return the next word of a line."""
        word = make_word(len(self.spoken_words) + 1)
        self.spoken_words.append(word)
        self.line_of[word], self.said_at[word] = line, self.clock.monotonic()
        line.words.append(word)
        return word

    # -- who may be heard ----------------------------------------------------------------------------------------

    def hears(self, person: int) -> bool:
        """Return whether a person may be heard now."""
        return person not in self.out and (not self.plan.asks or person in self.agreed)

    def on_consent(self, agreed: frozenset[int]) -> None:
        """A room has opened. In another session everybody is asked anew; nobody has agreed who has not pressed."""
        if not agreed <= self.agreed:
            self.breaks(f"{sorted(agreed)} have agreed for the room, and {sorted(self.agreed)} have pressed")
        self.agreed = set(agreed)

    def withdraw(self, person: int) -> None:
        """Note that what a person has said, and is no turn yet, may not become one."""
        session, total = self.session, 0 if self.timeline is None else self.timeline.total_turns
        self.withdrawn[person] = Withdrawal(self.clock.monotonic(), session, total)

    def excuse_unrecorded(self) -> None:
        """Note that what is no turn yet may be lost: something broke."""
        for line in self.lines:
            line.is_excused |= not self.is_recorded(line)

    def is_recorded(self, line: Line) -> bool:
        """Return whether all words of a line are in turns or notes."""
        return bool(line.words) and all(word in self.recorded for word in line.words)

    def excuse_unstored(self) -> None:
        """Note that what the open session has not stored may be lost."""
        if self.timeline is None:
            return
        stored = self.timeline.total_turns - self.timeline.store_queue.waiting
        for word, (session, place) in self.recorded.items():
            if session == self.session and (isinstance(place, str) or place >= stored):
                self.may_be_lost.add(word)
        for of, seq in list(self.turns):
            if of == self.session and seq >= stored:
                del self.turns[of, seq]
                # Another turn gets the number.
                self.replies.pop((of, seq), None)

    @property
    def session(self) -> str:
        """Return the name of the open session: its number in the evening."""
        return "" if self.timeline is None else self.name_of(self.timeline.session_id)

    def name_of(self, session_id: str) -> str:
        return self._sessions.setdefault(session_id, f"session-{len(self._sessions) + 1}")

    # -- what the bot uses ---------------------------------------------------------------------------------------

    def words_in(self, text: str) -> list[str]:
        """Return the words of people in a text."""
        return [word for word in _WORD.findall(text) if word in self.line_of]

    def used(self, where: str, text: str) -> None:
        """Check that nothing in a text that the bot uses now is of somebody who was forgotten or has opted out."""
        # The folder has another name each time, which the database's errors tell.
        digest = hashlib.sha256(text.replace(str(self.folder), "").encode()).hexdigest()[:12]
        self.note(where, digest, *self.words_in(text)[-4:])
        for word in self.words_in(text):
            if word in self.forgotten:
                self.breaks(f"{where}: {word} was forgotten")
            elif self.line_of[word].person in self.out:
                self.breaks(f"{where}: {word} is of {NAMES[self.line_of[word].person - 1]}, who has opted out")

    # -- what the bot tells of itself ----------------------------------------------------------------------------

    def see(self, event: events.Event) -> None:
        """Take an event of the room, and check what it says."""
        takes: dict[type, Callable[[Any], None]] = {
            events.RoomOpened: self._on_opened,
            events.RoomClosed: self._on_closed,
            events.TurnRecorded: lambda it: self._on_turn(it.turn),
            events.ScreenNoted: lambda it: self._on_noted(it.note),
            events.SpeechDropped: self._on_dropped,
            events.ReplyFinished: self._on_reply,
            events.ReplySpoken: lambda it: self.note("spoke", *self.words_in(it.text)),
            events.CompactionLanded: self._on_landed,
            events.CompactionFailed: lambda it: self.note("fold failed", it.cursor),
            events.ContextBuilt: self._on_context,
            events.QueuesMeasured: self._on_measured,
            events.Problem: lambda it: self.note("problem", it.where),
        }
        takes.get(type(event), lambda _: None)(event)

    def _on_measured(self, event: events.QueuesMeasured) -> None:
        for queue in event.queues:
            if queue.capacity is not None and queue.waiting > queue.capacity:
                self.breaks(f"{queue.waiting} wait in {queue.name}, which takes {queue.capacity}")

    def _on_opened(self, event: events.RoomOpened) -> None:
        self.note("opened", self.name_of(event.session_id), f"resumed={event.resumed}")
        self._is_closed = False

    def _on_closed(self, event: events.RoomClosed) -> None:
        self.note("closed", event.reason)
        self.silenced, self._is_closed = False, True
        self.excuse_unrecorded()
        self._excuse_with_broken_disk()

    def _excuse_with_broken_disk(self) -> None:
        if self.has(Fault.DISK_ERROR, Fault.DISK_HANG, Fault.DISK_LOST, within_s=AFTERMATH_S):
            self.excuse_unstored()

    def _on_turn(self, turn: Turn) -> None:
        self._on_recorded(turn)
        if self._is_closed:
            # It waited for the disk when the room closed.
            self._excuse_with_broken_disk()

    def _on_recorded(self, turn: Turn) -> None:
        session = self.session
        self.note("turn", session, turn.seq, turn.kind.value, *self.words_in(turn.text))
        self.turns[session, turn.seq] = self.words_in(turn.text)
        if turn.kind is TurnKind.ASSISTANT:
            return
        for part in turn.parts:
            for word in self.words_in(part.text):
                self._on_recorded_word(session, turn, part.speaker_id, word)

    def _on_recorded_word(self, session: str, turn: Turn, speaker_id: str, word: str) -> None:
        line = self.line_of[word]
        if str(line.person) != speaker_id:
            self.breaks(f"{word} of {line.person} is a turn of {speaker_id}")
        if word in self.recorded and word not in self.may_be_lost:
            self.breaks(f"{word} is in two turns: {self.recorded[word]} and {turn.seq}")
        self.recorded[word] = session, turn.seq
        if turn.kind in _SAID:
            number = self.spoken_words.index(word)
            if number < self._last_said[line.person]:
                self.breaks(f"{word} comes after what was said later")
            self._last_said[line.person] = number
        gone = self.withdrawn.get(line.person)
        if (
            gone is not None
            and self.said_at[word] < gone.at
            and (session != gone.session or turn.seq >= gone.total_turns)
        ):
            self.breaks(f"{word} was withdrawn and became turn {turn.seq}")

    def _on_dropped(self, event: events.SpeechDropped) -> None:
        self.note("dropped", event.speaker_id, event.reason)
        if event.reason == OPTED_OUT:
            is_right = event.speaker_id in self.withdrawn
        else:
            is_right = self.has(*_EXCUSED_BY.get(event.reason, ()), within_s=AFTERMATH_S)
        if not is_right:
            self.breaks(f"speech of {event.speaker_id} was dropped: {event.reason}")
        for line in self.lines:
            if line.person == event.speaker_id and line.kind == "said":
                line.is_excused |= not self.is_recorded(line)

    def _on_reply(self, event: events.ReplyFinished) -> None:
        self.note("reply", event.answer_to, event.outcome.value)
        self.replies[self.session, event.answer_to].append(event.outcome)
        spoken = [sum(each in _SPOKEN for each in outcomes) for outcomes in self.replies.values()]
        if event.outcome in _SPOKEN and sum(count - 1 for count in spoken if count) > self.results_told:
            self.breaks(f"turn {event.answer_to} was answered twice")

    def _on_landed(self, event: events.CompactionLanded) -> None:
        self.note("landed", event.old_cursor, event.new_cursor, *self.words_in(event.summary))
        assert self.timeline is not None, "a fold is of an open session"
        before, total = self._cursors.get(self.session, event.old_cursor), self.timeline.total_turns
        self._cursors[self.session] = event.new_cursor
        rules = {
            # A fold whose answer was lost is stored, and was not told.
            "the cursor goes back or jumps": event.old_cursor >= before
            and event.new_cursor - event.old_cursor in (0, BATCH_SIZE),
            "the cursor has reached the window": event.new_cursor <= max(event.old_cursor, total - RECENT_WINDOW),
            "covered is not what is folded": event.covered_through_turn == event.new_cursor - 1,
            "the summary is too long": len(event.summary) <= MAX_SUMMARY_CHARS,
        }
        for rule, holds in rules.items():
            if not holds:
                self.breaks(f"{rule}: {event.old_cursor} to {event.new_cursor} of {total}")

    def _on_context(self, event: events.ContextBuilt) -> None:
        """Check that every turn from the cursor on is in the prompt."""
        assert self.timeline is not None, "a reply is of an open session"
        text = " ".join(part.content for part in event.parts)
        shown, session = set(self.words_in(text)), self.session
        for (of, seq), words in self.turns.items():
            if of != session or not self.timeline.cursor <= seq <= event.answer_to:
                continue
            for word in words:
                line = self.line_of[word]
                # A reply of the bot may go with somebody's words.
                own = self.recorded.get(word) == (session, seq)
                if own and word not in shown and not self._may_be_hidden(line):
                    self.breaks(f"{word} of turn {seq} is not in the prompt for {event.answer_to}")

    def _may_be_hidden(self, line: Line) -> bool:
        return line.person in self.withdrawn or not self.hears(line.person)

    def _on_noted(self, note: Note) -> None:
        """A note of a shared screen was taken."""
        self.note("noted", note.id, note.what)
        for word in self.words_in(note.what):
            self.recorded[word] = self.session, note.id
