"""`roomtone bench unasked`: how often the bot speaks in real talk among people, of whom nobody means it.

Supplied transcripts are played to a room's participation, with the bot's default names and, for information, with names
that it could have instead.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.disabled_logging import logging_disabled
from benchmarks.figures import entry_of, number_at, sample_at
from benchmarks.measuring import Measuring
from benchmarks.memory.conversations.transcripts import read_conversations
from benchmarks.report import BenchmarkReport, Target, at_most
from benchmarks.unasked.room import TalkDecisions, play_talk, says_name
from benchmarks.unasked.talk import PAUSE_S, UtteranceCut, make_talk
from bot.brain.settings import BrainSettings
from bot.cli.rehearsal.written.audio import WORDS_A_SECOND

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from benchmarks.memory.conversations.conversation import RecordedConversation
    from benchmarks.progress import Progress
    from benchmarks.report import Json
    from benchmarks.unasked.options import UnaskedBenchOptions

# Conversations of these origins were written, by language models and people; nobody spoke them.
_WRITTEN = frozenset({"LoCoMo"})
# The report names at most this many unasked replies, and quotes so much of each where that was chosen.
_EXAMPLES = 24
_EXAMPLE_CHARS = 80
_NO_TRANSCRIPTS = (
    "No conversations were named, so nothing was measured. `--transcripts DIR` takes JSON lines, or files of QMSum or "
    "CRD3, as `roomtone bench memory` does."
)
_TIMES = (
    f"Times come from the number of words: {WORDS_A_SECOND:g} a second, and {PAUSE_S:g} s from one utterance to the "
    "next. Texts are those of the transcripts; what a recogniser would mishear is not in them."
)


async def run(
    options: UnaskedBenchOptions, progress: Progress, *, on_part: Callable[[BenchmarkReport], None] | None = None
) -> BenchmarkReport:
    """Play every conversation with every name. `on_part` gets the unfinished report after each name.

    Raises `TranscriptFormatError`.
    """
    measuring = _Measuring(progress=progress, on_part=on_part, texts=options.texts)
    if options.transcripts is None:
        measuring.remark(_NO_TRANSCRIPTS)
        return measuring.report()
    measuring.remark(_TIMES)
    conversations = measuring.among_people(await asyncio.to_thread(read_conversations, options.transcripts))
    default = BrainSettings()
    with logging_disabled():
        await measuring.play(default.name, default.wake_names, conversations)
        for name in options.names:
            await measuring.play(name, (name,), conversations)
            measuring.tell(name)
    return measuring.report()


@dataclass(slots=True, kw_only=True)
class _Measuring(Measuring):
    """One run and its results so far."""

    bench = "unasked"

    texts: bool

    def targets(self) -> tuple[Target, ...]:
        return unasked_targets(self.ours)

    def among_people(self, conversations: Sequence[RecordedConversation]) -> list[RecordedConversation]:
        """Return the conversations that people spoke with each other, and remark on the others."""
        reasons: Counter[str] = Counter()
        kept: list[RecordedConversation] = []
        for conversation in conversations:
            if conversation.origin in _WRITTEN:
                reasons["were written and not spoken"] += 1
            elif any(line.by_bot for line in conversation.lines):
                reasons["have an assistant in them"] += 1
            elif len(conversation.speakers) < 2:
                reasons["have one speaker, who would be alone with the bot"] += 1
            else:
                kept.append(conversation)
        for reason, count in reasons.items():
            self.remark(f"Of {len(conversations)} conversations, {count} {reason}, and were left out.")
        return kept

    async def play(self, name: str, wake_names: tuple[str, ...], conversations: Sequence[RecordedConversation]) -> None:
        """Play the conversations in which nobody has the bot's name, and store the figures."""
        played = [each for each in conversations if not any(says_name(who, wake_names) for who in each.speakers)]
        left_out: list[Json] = [each.name for each in conversations if each not in played]
        entry: dict[str, Json] = {"somebody_has_the_name_in": left_out}
        self.progress.step(f"talk among people, the bot's name is {name}", total=len(UtteranceCut) * len(played))
        for cut in UtteranceCut:
            origins: dict[str, TalkDecisions] = {}
            for conversation in played:
                decisions = await play_talk(make_talk(conversation, cut), wake_names)
                origins.setdefault(conversation.origin, TalkDecisions()).add(decisions)
                self.progress.advance()
            entry[cut.value] = talk_figures(origins, texts=self.texts)
        self.ours[name] = entry
        self.part_done()

    def tell(self, name: str) -> None:
        """Remark on the figures of a name that is not the default one."""
        told = []
        for cut in UtteranceCut:
            spoken = number_at(self.ours, name, cut.value, "spoken_unasked") or 0
            minutes = number_at(self.ours, name, cut.value, "minutes") or 0
            kinds = entry_of(entry_of(entry_of(self.ours, name), cut.value), "kinds")
            of = f" ({', '.join(f'{kind}: {count}' for kind, count in kinds.items())})" if kinds else ""
            times = "time" if spoken == 1 else "times"
            told.append(f"{spoken:.0f} {times} in {minutes:,.0f} minutes of {cut.value}{of}")
        self.remark(f"With the name {name} it would have spoken {' and '.join(told)}.")


def unasked_targets(ours: Mapping[str, Json]) -> tuple[Target, ...]:
    """Return the targets with their values in `ours`: the default names alone."""
    name = BrainSettings().name
    return tuple(
        at_most(
            f"spoken unasked in real talk among people, {cut.value}",
            "0",
            number_at(ours, name, cut.value, "spoken_unasked"),
            0,
            sample_at(ours, "minutes", name, cut.value, "minutes"),
        )
        for cut in UtteranceCut
    )


def talk_figures(origins: Mapping[str, TalkDecisions], *, texts: bool) -> dict[str, Json]:
    """Return the figures of all talks. `origins`: their decisions, by where the talks come from. `texts`: quote the
    utterances that would have been answered.
    """
    total = TalkDecisions()
    for decisions in origins.values():
        total.add(decisions)
    hours = total.duration_s / 3600
    kinds = Counter(reply.kind for reply in total.replies)
    examples: list[Json] = [
        f"{reply.talk}, line {reply.line}, {reply.kind}{f': {_cut(reply.text)}' if texts else ''}"
        for reply in total.replies[:_EXAMPLES]
    ]
    return {
        "conversations": total.talks,
        "minutes": round(total.duration_s / 60, 1),
        "utterances": total.utterances,
        "spoken_unasked": len(total.replies),
        "unasked_an_hour": round(len(total.replies) / hours, 3) if hours else None,
        "kinds": dict(sorted(kinds.items())),
        "of": {
            origin: f"{len(decisions.replies)} in {decisions.duration_s / 60:,.0f} minutes"
            for origin, decisions in sorted(origins.items())
        },
        "kept_silent": {reason.value: count for reason, count in sorted(total.kept_silent.items())},
        "silenced": total.silenced,
        "examples": examples,
    }


def _cut(text: str) -> str:
    return text if len(text) <= _EXAMPLE_CHARS else f"{text[:_EXAMPLE_CHARS]}…"
