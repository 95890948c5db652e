"""Judges what a scenario expects against what happened.

The functions are pure: they take the evidence of a run and return one result for each expectation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from bot.events import ContextBuilt, UtteranceTranscribed
from compaction.model import Turn
from rehearsal.judge import replies
from rehearsal.judge.replies import RunEvidence
from rehearsal.report.report import ExpectationResult, UtteranceReport, count
from rehearsal.runner.record import LoggedProblem
from rehearsal.script.expectations import (
    ExpectAnswer,
    Expectation,
    ExpectAttributed,
    ExpectCompaction,
    ExpectCompactionsUnbroken,
    ExpectDaveFailures,
    ExpectEveryUtteranceHeardOnce,
    ExpectFactOnlyInSummary,
    ExpectInterrupted,
    ExpectMaxBotTurns,
    ExpectMaxWer,
    ExpectMinBotTurns,
    ExpectModelKnew,
    ExpectNothingRaised,
    ExpectNoticePosted,
    ExpectPromptsComplete,
    ExpectRealtimeSessions,
    ExpectRecorded,
    ExpectSilent,
    ExpectThought,
    ExpectTimelineComplete,
    ExpectToolCalled,
    ExpectTruncated,
    ExpectTurnsUnbroken,
)
from rehearsal.words import contains_words, word_errors

# A text is another person's if it has two in three of their words and one in three of its own speaker's at most.
OWN_WORDS_WER, OTHERS_WER = 0.67, 0.34
# Lines that begin at most so far apart may overlap.
TOGETHER_S = 10.0
# The kinds of prompt parts that stand for the turns whose numbers they have.
_COVERING_PARTS = frozenset({"turn", "current", "summary", "eviction_note"})


def judge_expectation(expected: Expectation, evidence: RunEvidence) -> ExpectationResult:
    """Return whether one expectation was met, with a detail that explains the verdict."""
    passed, detail = _VERDICTS[type(expected)](expected, evidence)
    return ExpectationResult(_name(expected), passed, detail)


def _name(expected: Expectation) -> str:
    if isinstance(expected, ExpectCompaction):
        return f"compaction {expected.old_cursor} -> {expected.new_cursor}"
    about = (str(getattr(expected, key, "")) for key in ("to", "since", "name", "contains"))
    negated = "not " if isinstance(expected, ExpectRecorded) and not expected.value else ""
    return f"{negated}{expected.kind} {next(filter(None, about), '')}".rstrip()


def _max_wer(expected: ExpectMaxWer, evidence: RunEvidence) -> tuple[bool, str]:
    if evidence.wer is None:
        return False, "nothing was said"
    return evidence.wer <= expected.value, f"{evidence.wer:.1%} of the words, at most {expected.value:.1%}"


def _dave_failures(expected: ExpectDaveFailures, evidence: RunEvidence) -> tuple[bool, str]:
    received, failures = evidence.packets.get("received", 0), evidence.packets.get("dave_failures", 0)
    return received > 0 and failures <= expected.max, f"{failures} of {received} packets"


def _compaction(expected: ExpectCompaction, evidence: RunEvidence) -> tuple[bool, str]:
    steps = [(done.old_cursor, done.new_cursor) for done in evidence.compactions]
    seen = ", ".join(f"{old} -> {new}" for old, new in steps) or "none"
    return (expected.old_cursor, expected.new_cursor) in steps, f"landed: {seen}"


def _heard_once(expected: ExpectEveryUtteranceHeardOnce, evidence: RunEvidence) -> tuple[bool, str]:
    said = len(evidence.utterances)
    if not said:
        return False, "nothing was said"
    missing = [f"not heard: {_quoted(row)}" for row in evidence.utterances if not row.heard_as]
    wrong = [f"heard twice: {_quoted(row)}" for row in evidence.utterances if row.twice]
    wrong += [f"cut: {_quoted(row)}" for row in evidence.utterances if row.step in expected.whole and row.heard_as[1:]]
    wrong += [f'nobody said: {stray.speaker}, "{stray.transcript}"' for stray in evidence.strays]
    met = not wrong and len(missing) <= expected.may_miss * said
    return met, "; ".join([f"{said - len(missing)} of {said}", *missing, *wrong])


def _quoted(row: UtteranceReport) -> str:
    return f'{row.speaker}, "{row.reference}"'


def _attributed(evidence: RunEvidence) -> tuple[bool, str]:
    heard = [row for row in evidence.utterances if row.heard_as]
    said = [(stray.transcript, stray.really, stray.speaker) for stray in evidence.strays if stray.really]
    # Utterances are matched by time, so only words tell that two people who spoke at once were taken for each other.
    said += [
        (row.transcript, other.speaker, row.speaker) for row in heard if (other := _really(row, evidence.utterances))
    ]
    wrong = [f'"{transcript}" was said by {really}, not {speaker}' for transcript, really, speaker in said]
    return not wrong and bool(heard), "; ".join(wrong) or f"{len(heard)} of {len(heard)}"


def _really(row: UtteranceReport, rows: Sequence[UtteranceReport]) -> UtteranceReport | None:
    """Return another person's line whose words were heard under this one, or None."""
    if row.wer < OWN_WORDS_WER:
        return None
    others = (
        other for other in rows if other.speaker != row.speaker and abs(other.started_s - row.started_s) <= TOGETHER_S
    )
    return next((other for other in others if word_errors(other.reference, row.transcript).rate <= OTHERS_WER), None)


def _notice_posted(expected: ExpectNoticePosted, messages: Sequence[str]) -> tuple[bool, str]:
    found = [text for text in messages if expected.contains.casefold() in text.casefold()]
    if not messages:
        return expected.count == 0, "the bot wrote no message"
    if expected.count is not None:
        detail = f"{len(found)} of {count(len(messages), 'message')}, exactly {expected.count} expected"
        return len(found) == expected.count, detail
    return bool(found), f'"{found[0]}"' if found else f"{count(len(messages), 'message')}, none contains it"


def _nothing_raised(expected: ExpectNothingRaised, problems: Sequence[LoggedProblem]) -> tuple[bool, str]:
    counted = [problem for problem in problems if expected.warnings or problem.level == "error"]
    return not counted, "; ".join(f"{problem.event}: {problem.detail}" for problem in counted) or "nothing"


def _turns_unbroken(turns: Sequence[Turn], stored: int) -> tuple[bool, str]:
    numbers = Counter(turn.seq for turn in turns)
    twice = sorted(seq for seq, times in numbers.items() if times > 1)
    missing = sorted(set(range(stored, max(numbers, default=stored - 1) + 1)) - numbers.keys())
    reasons = [f"written twice: {_first_ten(twice)}"] if twice else []
    reasons += [f"missing: {_first_ten(missing)}"] if missing else []
    if not numbers:
        return False, "no turn was recorded"
    return not reasons, "; ".join(reasons) or f"turns {min(numbers)} to {max(numbers)}"


def _first_ten(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers[:10])) + (" …" if len(numbers) > 10 else "")


def _timeline_complete(heard: Sequence[UtteranceTranscribed], turns: Sequence[Turn]) -> tuple[bool, str]:
    spoken: dict[str, list[str]] = {}
    for utterance in sorted(heard, key=lambda one: one.started_at):
        spoken.setdefault(str(utterance.speaker_id), []).append(utterance.text)
    written: dict[str, list[str]] = {}
    for turn in sorted(turns, key=lambda one: one.seq):
        for part in turn.parts if turn.kind == "speech" else ():
            written.setdefault(part.speaker_id, []).append(part.text)
    wrong = 0
    for speaker in spoken.keys() | written.keys():
        wrong += word_errors(" ".join(spoken.get(speaker, [])), " ".join(written.get(speaker, []))).errors
    total = sum(len(texts) for texts in spoken.values())
    return total > 0 and not wrong, f"{count(total, 'utterance')}, {count(wrong, 'word')} missing or twice"


def _compactions_unbroken(evidence: RunEvidence) -> tuple[bool, str]:
    steps = [(done.old_cursor, done.new_cursor) for done in evidence.compactions]
    connected = all(earlier[1] == later[0] for earlier, later in pairwise([(0, 0), *steps]))
    reasons = [] if connected else ["they do not follow each other"]
    reasons += [f"one failed: {reason}" for reason in evidence.failed_compactions[:1]]
    return not reasons, "; ".join([count(len(steps), "compaction"), *reasons])


def _prompts_complete(expected: ExpectPromptsComplete, evidence: RunEvidence) -> tuple[bool, str]:
    known = {built.answer_to for built in evidence.prompts}
    unknown = [reply for reply in evidence.replies if reply.utterance_id is not None and reply.answer_to not in known]
    lacking = [(built.answer_to, missing) for built in evidence.prompts if (missing := _missing_turns(built))]
    largest = max((sum(part.tokens for part in built.parts) for built in evidence.prompts), default=0)
    reasons = [f'no prompt is known for "{unknown[0].text}"'] if unknown else []
    reasons += [f"that for turn {seq} lacks turn {_first_ten(missing)}" for seq, missing in lacking[:1]]
    met = not reasons and largest <= expected.max_tokens
    size = f"{count(len(evidence.prompts), 'prompt')}, at most {largest} of {expected.max_tokens} tokens"
    return met, "; ".join([size, *reasons])


def _missing_turns(built: ContextBuilt) -> list[int]:
    """Return the turns before the answered one that no part of the prompt covers."""
    covered: set[int] = set()
    for part in built.parts:
        if part.kind in _COVERING_PARTS and part.seq_from is not None and part.seq_to is not None:
            covered.update(range(part.seq_from, part.seq_to + 1))
    return [seq for seq in range(built.answer_to) if seq not in covered]


def _recorded(expected: ExpectRecorded, evidence: RunEvidence) -> tuple[bool, str]:
    who = evidence.speaker_ids[expected.who]
    own = [part.text for turn in evidence.turns for part in turn.parts if part.speaker_id == who]
    # A recogniser writes the same word large at the beginning of a sentence.
    found = next((text for text in own if expected.contains.casefold() in text.casefold()), None)
    detail = f"{count(len(own), 'turn')} of {expected.who}, none contains it" if found is None else f'"{found}"'
    return (found is not None) is expected.value, detail


def _tool_called(expected: ExpectToolCalled, evidence: RunEvidence) -> tuple[bool, str]:
    results = [use.result for use in evidence.servers.tools if use.name == expected.name]
    others = ", ".join(use.name for use in evidence.servers.tools) or "none"
    if not results:
        return False, f"tools that were called: {others}"
    missing = [word for word in expected.words if not any(contains_words(text, word) for text in results)]
    return not missing, f"missing {', '.join(missing)}" if missing else count(len(results), "time")


_VERDICTS: Mapping[type, Callable[[Any, RunEvidence], tuple[bool, str]]] = {
    ExpectEveryUtteranceHeardOnce: _heard_once,
    ExpectAttributed: lambda _, evidence: _attributed(evidence),
    ExpectMaxWer: _max_wer,
    ExpectDaveFailures: _dave_failures,
    ExpectCompaction: _compaction,
    ExpectCompactionsUnbroken: lambda _, evidence: _compactions_unbroken(evidence),
    ExpectPromptsComplete: _prompts_complete,
    ExpectAnswer: replies.judge_answer,
    ExpectInterrupted: replies.judge_interrupted,
    ExpectSilent: lambda expected, evidence: replies.judge_silence(
        expected, evidence.silences.get(expected), evidence.bot_turns
    ),
    ExpectThought: replies.judge_thought,
    ExpectRecorded: _recorded,
    ExpectModelKnew: replies.judge_model_knew,
    ExpectToolCalled: _tool_called,
    ExpectTruncated: replies.judge_truncated,
    ExpectRealtimeSessions: lambda expected, evidence: (
        evidence.servers.realtime_sessions == expected.count,
        count(evidence.servers.realtime_sessions, "session"),
    ),
    ExpectFactOnlyInSummary: replies.judge_only_in_summary,
    ExpectNoticePosted: lambda expected, evidence: _notice_posted(expected, evidence.messages),
    ExpectNothingRaised: lambda expected, evidence: _nothing_raised(expected, evidence.problems),
    ExpectMinBotTurns: lambda expected, evidence: (
        len(evidence.received_turns) >= expected.count,
        f"it was heard {count(len(evidence.received_turns), 'time')}",
    ),
    ExpectMaxBotTurns: lambda expected, evidence: (
        len(evidence.bot_turns) <= expected.count,
        f"it spoke {count(len(evidence.bot_turns), 'time')}",
    ),
    ExpectTurnsUnbroken: lambda _, evidence: _turns_unbroken(evidence.turns, evidence.stored_turns),
    ExpectTimelineComplete: lambda _, evidence: _timeline_complete(evidence.heard, evidence.turns),
}
