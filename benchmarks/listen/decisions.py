"""Measures whether the bot replies when addressed, and only then: plays talks to a room's own participation.

The talks are scripted dialogues, and supplied transcripts of people who do not mean the bot. There is no audio. A
dialogue's texts are as a recogniser would write them; what one would mishear in a transcript is not in it. A reply
takes its usual time. Where a room asks a language model, that model is taken to be right; how often it is asked in vain
is a figure of its own.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from dataclasses import dataclass, field
from itertools import islice, permutations
from random import Random
from typing import TYPE_CHECKING

from benchmarks.figures import number_at, percentile, sample_at, share_of
from benchmarks.listen.dialogues import load_dialogues
from benchmarks.listen.talk_room import LineDecision, play_talk
from benchmarks.listen.timed_talk import ReplyExpected, Talk, UtteranceCut, make_talk
from benchmarks.memory.conversations.synthetic_evenings import TemplateSet
from benchmarks.memory.conversations.transcripts import read_conversations
from benchmarks.report import Json, Target, at_least, at_most
from bot.brain.decider import Situation, decide
from bot.brain.settings import BrainSettings
from bot.brain.wakeword import call_names

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from benchmarks.measuring import Progress
    from benchmarks.memory.conversations.conversation import RecordedConversation

# The report shows at most this many wrong decisions as examples, and as many places of unasked replies. It never
# quotes a transcript: the conversations may be private.
_EXAMPLES = 24
# The hostile crowd.
TEXTS = 100
PEOPLE = 99
WORDS = 400
_NAME_CHARS = 32
_UNASKED = "unasked"
# Conversations of these origins were written, by language models and people; nobody spoke them.
_WRITTEN = frozenset({"LoCoMo"})


@dataclass(slots=True)
class DecisionCounts:
    """The decisions of a run. `owed`, `answered`, `unowed` and `unwanted` count lines by kind. `in_vain`: how often a
    model was asked about lines that were not for it. `company_s`: the seconds of dialogues with more than one person.
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

    def add(self, talk: Talk, decisions: Sequence[LineDecision]) -> None:
        """Add what was decided on each line of a talk."""
        ignored: set[tuple[str, ...]] = set()
        for line, done in zip(talk.lines, decisions, strict=True):
            # A follow-up does not count if the bot did not answer the same person before: nobody would say it then.
            if line.owed is ReplyExpected.MAY or (line.kind == "follow_up" and line.speakers in ignored):
                continue
            if line.owed is ReplyExpected.YES:
                self.owed[line.kind] += 1
                self.answered[line.kind] += done.answers
                (ignored.discard if done.answers else ignored.add)(line.speakers)
                wrong = "" if done.answers else "missed"
            else:
                self.unowed[line.kind] += 1
                self.unwanted[line.kind] += done.answers
                wrong = "unwanted" if done.answers else ""
            if wrong:
                self.mistakes.append(f"{wrong}, {line.kind}: {line.text}")
        if len(talk.people) > 1:
            self.company_s += talk.duration_s
            self.in_vain += sum(done.in_vain for done in decisions)

    def figures(self, *, examples: bool) -> dict[str, Json]:
        """Return the figures for the report. `examples`: include the wrongly decided lines, for tuning."""
        figures: dict[str, Json] = {
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
            figures["mistakes"] = mistakes[:_EXAMPLES]
        return figures


async def measure_decisions() -> dict[str, Json]:
    """Return the figures of both dialogue sets, with a language model and, as `without_model`, without one. The
    held-out set has only counts, so that nobody tunes to its lines.
    """

    async def figures(part: TemplateSet, *, model: bool) -> dict[str, Json]:
        counts = DecisionCounts()
        for talk in load_dialogues(part):
            counts.add(talk, await play_talk(talk, can_skip=model))
        return counts.figures(examples=part is TemplateSet.TUNING)

    return {
        part.value: {**await figures(part, model=True), "without_model": await figures(part, model=False)}
        for part in TemplateSet
    }


def measure_crowd() -> dict[str, Json]:
    """Return the processor time of a decision in the event loop's thread, by crowd, and the greatest P95 of all.

    The names are made to be found in the text as often as possible. Every text is new, as what people say is, so
    nothing is remembered from the one before.
    """
    random = Random(1)  # noqa: S311 - nothing secret about a name
    letters = [random.choice("abcdefgh") for _ in range(WORDS)]
    # All of them have the letters of one word, and it begins as the bot's name does.
    scrambled = ["r" + "".join(each) for each in islice(permutations("omontie"), 0, 12 * WORDS, 12)]
    times = {
        "names and text of single letters": _times_ms(random, letters, " "),
        "names and text of words with the same letters": _times_ms(random, scrambled, " "),
        "the same with a pause after each word": _times_ms(random, scrambled, ", "),
    }
    p95s = {label: round(percentile(each, 0.95), 2) for label, each in times.items()}
    figures: dict[str, Json] = {"decisions": TEXTS * len(p95s), "worst_p95_ms": max(p95s.values())}
    return figures | {f"p95_ms, {label}": value for label, value in p95s.items()}


def _times_ms(random: Random, words: Sequence[str], between: str) -> list[float]:
    """Return the processor time of each decision in milliseconds."""
    names = [" ".join(random.choices(words, k=16))[:_NAME_CHARS] for _ in range(PEOPLE)]
    situation = Situation(
        people=PEOPLE + 1,
        wake_names=BrainSettings().names,
        other_names=frozenset().union(*map(call_names, names)),
    )
    times = []
    for number in range(TEXTS):
        heard = f"{between.join(words)} {number}"
        begun = time.thread_time()
        decide(heard, situation)
        times.append(1_000 * (time.thread_time() - begun))
    return times


async def measure_unasked(folder: Path, progress: Progress) -> tuple[dict[str, Json], list[str]]:
    """Play every conversation of a directory. Returns the figures, and remarks about conversations left out.

    Raises `TranscriptFormatError`.
    """
    every = await asyncio.to_thread(read_conversations, folder)
    reasons: Counter[str] = Counter(reason for each in every if (reason := why_left_out(each)))
    played = [each for each in every if not why_left_out(each)]
    progress.step("talk among people", total=len(UtteranceCut) * len(played))
    figures: dict[str, Json] = {}
    for cut in UtteranceCut:
        replies: list[Json] = []
        kept_silent: Counter[str] = Counter()
        duration_s, utterances = 0.0, 0
        for conversation in played:
            talk = make_talk(conversation, cut)
            duration_s += talk.duration_s
            utterances += len(talk.lines)
            for line, done in zip(talk.lines, await play_talk(talk), strict=True):
                if done.answers:
                    replies.append(f"{talk.name}, {line.kind}, {done.reason}")
                elif done.reason is not None:
                    kept_silent[done.reason] += 1
            progress.advance()
        figures[cut.value] = {
            "conversations": len(played),
            "minutes": round(duration_s / 60, 1),
            "utterances": utterances,
            "spoken_unasked": len(replies),
            "kept_silent": {str(reason): count for reason, count in sorted(kept_silent.items())},
            "examples": replies[:_EXAMPLES],
        }
    remarks = [
        f"Of {len(every)} conversations, {count} {reason}, and were left out." for reason, count in reasons.items()
    ]
    return figures, remarks


def why_left_out(conversation: RecordedConversation) -> str:
    """Return why a conversation is no talk among people; empty if it is one."""
    if conversation.origin in _WRITTEN:
        return "were written and not spoken"
    if any(line.by_bot for line in conversation.lines):
        return "have an assistant in them"
    return "have one speaker, who would be alone with the bot" if len(conversation.speakers) < 2 else ""


def deciding_targets(ours: Mapping[str, Json]) -> tuple[Target, ...]:
    """Return the targets with their values in `ours`: those of the held-out dialogues."""
    recall = number_at(ours, "deciding", TemplateSet.HELD_OUT, "recall")
    return (
        at_least(
            "answered of what was for it, held-out talks",
            ">= 95 %",
            recall,
            0.95,
            sample_at(ours, "questions", "deciding", TemplateSet.HELD_OUT, "owed"),
        ),
        at_most(
            "unwanted answers in 10 minutes of company, held-out talks",
            "<= 0.8",
            number_at(ours, "deciding", TemplateSet.HELD_OUT, "unwanted_in_10_min"),
            0.8,
            sample_at(ours, "minutes", "deciding", TemplateSet.HELD_OUT, "minutes_of_company"),
        ),
        at_most(
            "unwanted answers in 10 minutes of company without a model, held-out talks",
            "<= 0.8",
            number_at(ours, "deciding", TemplateSet.HELD_OUT, "without_model", "unwanted_in_10_min"),
            0.8,
            sample_at(ours, "minutes", "deciding", TemplateSet.HELD_OUT, "minutes_of_company"),
        ),
        at_most(
            "deciding with 99 hostile names and 400 words, CPU P95 ms",
            "<= 3 ms",
            number_at(ours, "deciding", "crowd", "worst_p95_ms"),
            3,
            sample_at(ours, "decisions", "deciding", "crowd", "decisions"),
        ),
    )


def unasked_targets(ours: Mapping[str, Json]) -> tuple[Target, ...]:
    """Return the targets with their values in `ours`."""
    return tuple(
        at_most(
            f"spoken unasked in real talk among people, {cut.value}",
            "0",
            number_at(ours, _UNASKED, cut.value, "spoken_unasked"),
            0,
            sample_at(ours, "minutes", _UNASKED, cut.value, "minutes"),
        )
        for cut in UtteranceCut
    )
