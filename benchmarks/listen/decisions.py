"""Measure whether the bot replies when addressed, and only then: runs the room's decider on scripted dialogues.

There is no audio. Texts are as a recogniser would write them, and a reply takes its usual time. Where the decider asks
a language model, that model is taken to be right; how often it is asked in vain is a figure of its own. Without a model
whatever the decider lets through is said.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Protocol

from benchmarks.figures import number_at, sample_at
from benchmarks.listen.dialogues import ANSWER_S, DialogueSet, ReplyExpected, load_dialogues
from benchmarks.report import Target, at_least, at_most
from benchmarks.stats import share_of
from bot.brain.decider import Situation, decide
from bot.brain.settings import BrainSettings
from bot.brain.wakeword import asks_for_silence, call_names
from bot.participation.engagement import Engagement
from bot.tuning import UNTUNED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from benchmarks.listen.dialogues import Dialogue, DialogueLine
    from benchmarks.report import Json

# The report shows at most this many wrong decisions as examples.
_EXAMPLES = 24


class DialogueResponder(Protocol):
    """Decides for one dialogue which lines to answer. It gets every line in order. `in_vain`: how many lines that were
    not for it a model was asked about.
    """

    in_vain: int

    def hears(self, line: DialogueLine) -> bool:
        """Return whether the bot answers this line. If so, assume that the answer is given."""


@dataclass(slots=True)
class DecisionCounts:
    """The decisions of a run. `owed`, `answered`, `unowed` and `unwanted` count lines by kind. `company_s`: the seconds
    of dialogues with more than one person.
    """

    owed: Counter[str] = field(default_factory=Counter)
    answered: Counter[str] = field(default_factory=Counter)
    unowed: Counter[str] = field(default_factory=Counter)
    unwanted: Counter[str] = field(default_factory=Counter)
    mistakes: list[str] = field(default_factory=list)
    in_vain: int = 0
    company_s: float = 0.0

    @property
    def recall(self) -> float | None:
        """Return the share of the lines addressed to the bot that it answered."""
        return share_of(self.answered.total(), self.owed.total())

    @property
    def unwanted_in_10_min(self) -> float | None:
        """Return how many unwanted answers the bot gave in ten minutes with more than one person."""
        return self._in_10_min(self.unwanted.total())

    def _in_10_min(self, count: int) -> float | None:
        return round(count * 600 / self.company_s, 3) if self.company_s else None

    def note(self, line: DialogueLine, *, answers: bool) -> None:
        """Record one decision."""
        if line.owed is ReplyExpected.YES:
            self.owed[line.kind] += 1
            self.answered[line.kind] += answers
        elif line.owed is ReplyExpected.NO:
            self.unowed[line.kind] += 1
            self.unwanted[line.kind] += answers
        if (line.owed is ReplyExpected.YES and not answers) or (line.owed is ReplyExpected.NO and answers):
            self.mistakes.append(f"{'unwanted' if answers else 'missed'}, {line.kind}: {line.text}")

    def figures(self, *, examples: bool) -> dict[str, Json]:
        """Return the figures for the report. `examples`: include the wrongly decided lines, for tuning."""
        told: dict[str, Json] = {
            "utterances": self.owed.total() + self.unowed.total(),
            "owed": self.owed.total(),
            "recall": self.recall,
            "unwanted": self.unwanted.total(),
            "minutes_of_company": round(self.company_s / 60, 1),
            "unwanted_in_10_min": self.unwanted_in_10_min,
            "model_asked_in_vain_in_10_min": self._in_10_min(self.in_vain),
            "answered_of_owed": {kind: f"{self.answered[kind]} of {self.owed[kind]}" for kind in sorted(self.owed)},
            "unwanted_of": {kind: f"{self.unwanted[kind]} of {self.unowed[kind]}" for kind in sorted(self.unowed)},
        }
        if examples:
            mistakes: list[Json] = list(dict.fromkeys(self.mistakes))
            told["mistakes"] = mistakes[:_EXAMPLES]
        return told


class RoomtoneDecider:
    """The bot's own decider in one dialogue, with its default settings. `model`: whether there is one."""

    def __init__(self, talk: Dialogue, *, model: bool) -> None:
        self.in_vain = 0
        self._talk = talk
        self._can_skip = model
        self._wake_names = BrainSettings().names
        self._engagement = Engagement(window_s=UNTUNED.engagement_s)
        everybody = dict.fromkeys((*talk.people, *talk.bots, *(line.speaker for line in talk.lines)))
        self._ids = {name: number for number, name in enumerate(everybody)}
        self._names = {name: call_names(name) for name in everybody}

    def hears(self, line: DialogueLine) -> bool:
        """See `DialogueResponder.hears`."""
        speaker_id = self._ids[line.speaker]
        situation = Situation(
            people=len(self._talk.people),
            wake_names=self._wake_names,
            other_names=frozenset().union(*(called for name, called in self._names.items() if name != line.speaker)),
            engaged=self._engagement.is_engaged(speaker_id, at=line.started_s, at_once=not self._can_skip),
            by_bot=line.by_bot,
            can_skip=self._can_skip,
        )
        if not line.by_bot and asks_for_silence(line.text, self._wake_names):
            # Only the engagement ends here. A later call by name is answered: the caller is assumed to have ended the
            # silence.
            self._engagement.clear()
            return False
        decision = decide(line.text, situation)
        self._engagement.on_utterance(speaker_id, decision, started_at=line.started_s, ended_at=line.ended_s)
        skips = decision.may_skip and self._can_skip and line.owed is ReplyExpected.NO
        self.in_vain += skips
        if skips:
            self._engagement.remove(speaker_id)
        elif decision.answer:
            self._engagement.on_reply_ended(speaker_id, "So it is.", now=line.ended_s + ANSWER_S)
        return decision.answer and not skips


def score_dialogues(all_talks: Iterable[Dialogue], room_of: Callable[[Dialogue], DialogueResponder]) -> DecisionCounts:
    """Play each dialogue to its own decider, and return the decisions."""
    verdicts = DecisionCounts()
    for talk in all_talks:
        room = room_of(talk)
        ignored: set[str] = set()
        for line in talk.lines:
            answers = room.hears(line)
            # A follow-up does not count if the bot did not answer the same person before: nobody would say it then.
            if line.kind == "follow_up" and line.speaker in ignored:
                continue
            verdicts.note(line, answers=answers)
            if line.owed is ReplyExpected.YES:
                (ignored.discard if answers else ignored.add)(line.speaker)
        if len(talk.people) > 1:
            verdicts.company_s += talk.duration_s
            verdicts.in_vain += room.in_vain
    return verdicts


def measure_decisions() -> dict[str, Json]:
    """Return the figures of both dialogue sets, with a language model and, as `without_model`, without one. The
    held-out set has only counts, so that nobody tunes to its lines.
    """

    def figures(part: DialogueSet, *, model: bool) -> dict[str, Json]:
        counts = score_dialogues(load_dialogues(part), partial(RoomtoneDecider, model=model))
        return counts.figures(examples=part is DialogueSet.TUNING)

    return {
        part.value: {**figures(part, model=True), "without_model": figures(part, model=False)} for part in DialogueSet
    }


def deciding_targets(ours: Mapping[str, Json]) -> tuple[Target, ...]:
    """Return the targets with their values in `ours`: those of the held-out dialogues."""
    recall = number_at(ours, "deciding", DialogueSet.HELD_OUT, "recall")
    return (
        at_least(
            "answered of what was for it, held-out talks",
            ">= 95 %",
            recall,
            0.95,
            sample_at(ours, "questions", "deciding", DialogueSet.HELD_OUT, "owed"),
        ),
        at_most(
            "unwanted answers in 10 minutes of company, held-out talks",
            "<= 0.8",
            number_at(ours, "deciding", DialogueSet.HELD_OUT, "unwanted_in_10_min"),
            0.8,
            sample_at(ours, "minutes", "deciding", DialogueSet.HELD_OUT, "minutes_of_company"),
        ),
        at_most(
            "unwanted answers in 10 minutes of company without a model, held-out talks",
            "<= 0.8",
            number_at(ours, "deciding", DialogueSet.HELD_OUT, "without_model", "unwanted_in_10_min"),
            0.8,
            sample_at(ours, "minutes", "deciding", DialogueSet.HELD_OUT, "minutes_of_company"),
        ),
        at_most(
            "deciding with 99 hostile names and 400 words, CPU P95 ms",
            "<= 3 ms",
            number_at(ours, "deciding", "crowd", "worst_p95_ms"),
            3,
            sample_at(ours, "decisions", "deciding", "crowd", "decisions"),
        ),
    )
