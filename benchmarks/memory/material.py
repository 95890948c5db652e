"""Which conversations a run is made with: evenings of both template sets, and whatever was brought along."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.errors import TranscriptFormatError
from benchmarks.memory.evenings import TemplateSet, evening
from benchmarks.memory.options import checkpoints
from benchmarks.memory.race import folds_in, turns_for
from benchmarks.memory.transcripts import read_conversations

if TYPE_CHECKING:
    from benchmarks.memory.conversation import Conversation
    from benchmarks.memory.options import Options


@dataclass(frozen=True, slots=True)
class Heard:
    """One conversation as a contender hears it: judged after each of `folds`, as far as it goes."""

    conversation: Conversation
    folds: tuple[int, ...]

    @property
    def turns(self) -> int:
        """Return how many of its turns are heard."""
        return turns_for(max(self.folds))


class Material:
    """All conversations of one run, by the name of their set.

    Raises TranscriptFormatError when those that were brought along can't be read or are all too short.
    """

    def __init__(self, options: Options) -> None:
        self._options = options
        self._brought: dict[str, list[Conversation]] = defaultdict(list)
        if options.transcripts is not None:
            for conversation in read_conversations(options.transcripts):
                if folds_in(conversation) > 0:
                    self._brought[conversation.origin].append(conversation)
            if not self._brought:
                raise TranscriptFormatError(
                    f"No conversation in {options.transcripts} has the {turns_for(1)} turns that one fold needs."
                )

    def sets(self, *, needs_model: bool) -> dict[str, list[Heard]]:
        """Return the sets for who needs a language model (fewer and shorter), or for who doesn't."""
        options = self._options
        longest = options.model_folds if needs_model else options.folds
        count = options.model_evenings if needs_model else options.evenings
        made = [TemplateSet.HELD_OUT] if needs_model and not options.model_tuning else list(TemplateSet)
        sets = {
            templates.value: [
                Heard(evening(options.seed + number, templates, lines=turns_for(longest)), checkpoints(longest))
                for number in range(count)
            ]
            for templates in made
        }
        for origin, conversations in self._brought.items():
            heard = conversations[:count] if needs_model else conversations
            sets[origin] = [Heard(each, checkpoints(min(longest, folds_in(each)))) for each in heard]
        return sets
