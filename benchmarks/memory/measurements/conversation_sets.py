"""The conversations of a run: generated evenings of both template sets, and transcripts that the user supplied."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.errors import TranscriptFormatError
from benchmarks.memory.conversations.folds import folds_possible, turns_needed
from benchmarks.memory.conversations.synthetic_evenings import TemplateSet, generate_evening
from benchmarks.memory.conversations.transcripts import read_conversations, read_planted
from benchmarks.memory.conversations.written import LONG, NAMES, read_written
from benchmarks.memory.options import checkpoints
from benchmarks.memory.systems.recorded_answers import recorded_folds

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.memory.conversations.conversation import RecordedConversation
    from benchmarks.memory.options import MemoryBenchOptions


@dataclass(frozen=True, slots=True)
class PlannedConversation:
    """One conversation, and the numbers of `folds` after which it is judged."""

    conversation: RecordedConversation
    folds: tuple[int, ...]

    @property
    def turns(self) -> int:
        """Return how many turns of the conversation are played."""
        return turns_needed(max(self.folds))


class ConversationSets:
    """All conversations of one run, by the name of their set.

    Raises TranscriptFormatError when supplied conversations cannot be read or are all too short, or when facts that are
    to be planted fit none of them.
    """

    def __init__(self, options: MemoryBenchOptions) -> None:
        self._options = options
        self._brought: dict[str, list[RecordedConversation]] = defaultdict(list)
        # Read now, because a mistake in them is told before an hour of measuring and not after it.
        self._planted: list[RecordedConversation] = []
        if options.transcripts is not None:
            self._planted = read_planted(options.transcripts)
            for conversation in read_conversations(options.transcripts):
                if folds_possible(conversation) > 0:
                    self._brought[conversation.origin].append(conversation)
            if not self._brought:
                raise TranscriptFormatError(
                    f"No conversation in {options.transcripts} has the {turns_needed(1)} turns that one fold needs."
                )

    def recorded(self, system: str, answers: Path) -> dict[str, list[PlannedConversation]]:
        """Return the sets of conversations in which this system's answers are recorded, as far as they are."""
        sets: dict[str, list[PlannedConversation]] = defaultdict(list)
        brought = [each for conversations in self._brought.values() for each in conversations]
        for each in (*map(read_written, (*NAMES, LONG)), *brought):
            folds = min(recorded_folds(each.name, system, answers), folds_possible(each))
            if folds:
                sets[each.origin].append(PlannedConversation(each, checkpoints(folds)))
        return sets

    def asked(self) -> dict[str, list[RecordedConversation]]:
        """Return the supplied conversations with questions whose evidence is known, those with planted facts too."""
        asked: dict[str, list[RecordedConversation]] = defaultdict(list)
        for each in (*(each for conversations in self._brought.values() for each in conversations), *self._planted):
            if any(question.evidence for question in each.questions):
                asked[each.origin].append(each)
        return dict(asked)

    def sets(self, *, needs_model: bool) -> dict[str, list[PlannedConversation]]:
        """Return the sets of conversations. Systems that need a language model get fewer and shorter conversations."""
        options = self._options
        longest = options.model_folds if needs_model else options.folds
        count = options.model_evenings if needs_model else options.evenings
        made = [TemplateSet.HELD_OUT] if needs_model and not options.model_tuning else list(TemplateSet)
        sets = {
            templates.value: [
                PlannedConversation(
                    generate_evening(options.seed + number, templates, lines=turns_needed(longest)),
                    checkpoints(longest),
                )
                for number in range(count)
            ]
            for templates in (made if count else ())
        }
        written = {"written": list(map(read_written, NAMES)), "written, long": [read_written(LONG)]}
        if longest < folds_possible(written["written, long"][0]):
            del written["written, long"]
        for origin, conversations in {**written, **self._brought}.items():
            chosen = conversations[:count] if needs_model and origin in self._brought else conversations
            sets[origin] = [
                PlannedConversation(each, checkpoints(min(longest, folds_possible(each)))) for each in chosen
            ]
        return sets
