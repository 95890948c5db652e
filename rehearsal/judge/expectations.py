"""Judge what a scenario expects against what happened. Pure: evidence in, one result for each promise out."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from rehearsal.judge.evidence import holds, sounds_like, where
from rehearsal.judge.participation import taken_part
from rehearsal.judge.wer import word_errors
from rehearsal.report.report import ExpectationResult
from rehearsal.script.expectations import (
    Answer,
    Attributed,
    Compaction,
    DaveFailures,
    EveryUtteranceHeardOnce,
    FactOnlyInSummary,
    Interrupted,
    MaxBotTurns,
    MaxLatency,
    MaxWer,
    MinBotTurns,
    ModelKnew,
    NothingRaised,
    NoticePosted,
    RealtimeSessions,
    Recorded,
    Silent,
    Thought,
    TimelineComplete,
    ToolCalled,
    Truncated,
    TurnsUnbroken,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rehearsal.judge.evidence import Evidence
    from rehearsal.report.report import (
        BotTurnReport,
        LatencyReport,
        UtteranceReport,
    )
    from rehearsal.runner.observation import Problem, TurnRecorded, UtteranceHeard
    from rehearsal.script.expectations import Wanted


def judge(wanted: Wanted, evidence: Evidence) -> ExpectationResult:
    """Return whether one promise was kept, and a detail that explains it."""
    passed, detail = _verdict(wanted, evidence)
    return ExpectationResult(_name(wanted), passed, detail)


def _name(wanted: Wanted) -> str:
    match wanted:
        case Answer() | FactOnlyInSummary() | Interrupted() | ModelKnew() | Truncated():
            return f"{wanted.kind} {wanted.to}"
        case Silent() | Thought():
            return f"{wanted.kind} {wanted.since}"
        case NoticePosted():
            return f"{wanted.kind} {wanted.contains}".rstrip()
        case Recorded():
            return f"{wanted.kind} {wanted.contains}" if wanted.value else f"not {wanted.kind} {wanted.contains}"
        case ToolCalled():
            return f"{wanted.kind} {wanted.name}"
        case Compaction():
            return f"compaction {wanted.old_cursor} -> {wanted.new_cursor}"
        case MaxLatency():
            return f"{wanted.kind} {wanted.stage} p{wanted.percentile}"
        case _:
            return wanted.kind


def _verdict(wanted: Wanted, evidence: Evidence) -> tuple[bool, str]:
    match wanted:
        case EveryUtteranceHeardOnce():
            return _heard_once(wanted, evidence)
        case Attributed():
            return _attributed(evidence)
        case MaxWer():
            if evidence.wer is None:
                return False, "nothing was said"
            return evidence.wer <= wanted.value, f"{evidence.wer:.1%} of the words, at most {wanted.value:.1%}"
        case DaveFailures():
            received, failures = evidence.packets.get("received", 0), evidence.packets.get("dave_failures", 0)
            return received > 0 and failures <= wanted.max, f"{failures} of {received} packets"
        case Compaction():
            steps = [(done.old_cursor, done.new_cursor) for done in evidence.compactions]
            seen = ", ".join(f"{old} -> {new}" for old, new in steps) or "none"
            return (wanted.old_cursor, wanted.new_cursor) in steps, f"landed: {seen}"
        case Answer():
            return _answered(wanted, evidence.bot_turns)
        case Interrupted():
            return _interrupted(wanted, evidence)
        case Silent() | Thought() | Recorded() | ModelKnew() | ToolCalled() | Truncated() | RealtimeSessions():
            return taken_part(wanted, evidence)
        case FactOnlyInSummary():
            return _only_in_summary(wanted, evidence.bot_turns)
        case NoticePosted():
            return _notice_posted(wanted, evidence.messages)
        case NothingRaised():
            return _nothing_raised(wanted, evidence.problems)
        case MinBotTurns():
            return len(evidence.bot_turns) >= wanted.count, f"it spoke {len(evidence.bot_turns)} times"
        case MaxBotTurns():
            return len(evidence.bot_turns) <= wanted.count, f"it spoke {len(evidence.bot_turns)} times"
        case MaxLatency():
            return _fast_enough(wanted, evidence.latency)
        case TurnsUnbroken():
            return _unbroken(evidence.turns, evidence.stored_turns)
        case TimelineComplete():
            return _timeline_complete(evidence.heard, evidence.turns)
        case _:
            assert_never(wanted)


def _heard_once(wanted: EveryUtteranceHeardOnce, evidence: Evidence) -> tuple[bool, str]:
    said = len(evidence.utterances)
    if not said:
        return False, "nothing was said"
    missing = [f"not heard: {_quoted(row)}" for row in evidence.utterances if not row.heard_as]
    wrong = [f"heard twice: {_quoted(row)}" for row in evidence.utterances if row.twice]
    wrong += [f'nobody said: {stray.speaker}, "{stray.transcript}"' for stray in evidence.strays]
    kept = not wrong and len(missing) <= wanted.may_miss * said
    return kept, "; ".join([f"{said - len(missing)} of {said}", *missing, *wrong])


def _quoted(row: UtteranceReport) -> str:
    return f'{row.speaker}, "{row.reference}"'


def _attributed(evidence: Evidence) -> tuple[bool, str]:
    heard = [row for row in evidence.utterances if row.heard_as]
    taken = [stray for stray in evidence.strays if stray.really]
    wrong = [f'"{stray.transcript}" was said by {stray.really}, not {stray.speaker}' for stray in taken]
    return not wrong and bool(heard), "; ".join(wrong) or f"{len(heard)} of {len(heard)}"


def _answered(wanted: Answer, turns: Sequence[BotTurnReport]) -> tuple[bool, str]:
    answers = [turn for turn in turns if wanted.to in (turn.answers, *turn.in_turn)]
    if not answers:
        return False, "the bot did not answer it"
    text = " ".join(turn.heard_by_others if wanted.heard else turn.text for turn in answers)
    told = sounds_like if wanted.heard else holds
    missing = [word for word in wanted.all_of if not told(text, word)]
    none_of = bool(wanted.any_of) and not any(told(text, word) for word in wanted.any_of)
    reasons = [f"missing {', '.join(missing)}"] if missing else []
    reasons += [f"none of {', '.join(wanted.any_of)}"] if none_of else []
    reasons += _untimely(wanted, answers[0].end_to_first_audio_ms)
    said = f'{"heard" if wanted.heard else "said"}: "{text}"'
    return not reasons, "; ".join([*reasons, said])


def _untimely(wanted: Answer, sounded_ms: float | None) -> list[str]:
    """Return what is wrong with when an answer began to be heard."""
    if wanted.after_ms is None and wanted.before_ms is None:
        return []
    if sounded_ms is None:
        return ["when it began to be heard is not known"]
    late = wanted.before_ms is not None and sounded_ms > wanted.before_ms
    early = wanted.after_ms is not None and sounded_ms < wanted.after_ms
    return [f"heard after {sounded_ms:.0f} ms"] if late or early else []


def _interrupted(wanted: Interrupted, evidence: Evidence) -> tuple[bool, str]:
    answers = [turn for turn in evidence.bot_turns if turn.answers == wanted.to]
    if not answers:
        return False, "the bot did not answer it"
    turn = answers[-1]
    how = "broken off" if turn.interrupted else "spoken to its end"
    if turn.interrupted is not wanted.value or not wanted.by:
        return turn.interrupted is wanted.value, f'{how}: "{turn.text}"'
    over = [row.qualified_s for row in evidence.utterances if row.step == wanted.by and row.qualified_s is not None]
    if not over or turn.fell_silent_s is None:
        return False, f"{how}; when it fell silent, or when {wanted.by} had been heard long enough, is not known"
    late_ms = 1000 * (turn.fell_silent_s - over[0])
    return late_ms <= wanted.within_ms, f"{how}, silent {late_ms:.0f} ms after 700 ms of {wanted.by} were voiced"


def _only_in_summary(wanted: FactOnlyInSummary, turns: Sequence[BotTurnReport]) -> tuple[bool, str]:
    payloads = [turn.payload for turn in turns if turn.answers == wanted.to and turn.payload]
    if not payloads:
        return False, "what the model was sent for it is not known, or the bot did not answer"
    reasons = []
    for word in wanted.words:
        holding = [part for part in payloads[-1] if holds(part.content, word)]
        if not any(part.kind == "summary" for part in holding):
            reasons.append(f'the summary does not hold "{word}"')
        elsewhere = [where(part) for part in holding if part.kind != "summary"]
        if elsewhere:
            reasons.append(f'"{word}" also stands in {", ".join(elsewhere)}')
    return not reasons, "; ".join(reasons) or f"the summary alone holds {', '.join(wanted.words)}"


def _notice_posted(wanted: NoticePosted, messages: Sequence[str]) -> tuple[bool, str]:
    found = [text for text in messages if wanted.contains.casefold() in text.casefold()]
    if not messages:
        return wanted.count == 0, "the bot wrote no message"
    if wanted.count is not None:
        return len(found) == wanted.count, f"{len(found)} of {len(messages)} messages, exactly {wanted.count} wanted"
    return bool(found), f'"{found[0]}"' if found else f"{len(messages)} messages, none of them with it"


def _nothing_raised(wanted: NothingRaised, problems: Sequence[Problem]) -> tuple[bool, str]:
    counted = [problem for problem in problems if wanted.warnings or problem.level == "error"]
    return not counted, "; ".join(f"{problem.event}: {problem.detail}" for problem in counted) or "nothing"


def _fast_enough(wanted: MaxLatency, latency: LatencyReport) -> tuple[bool, str]:
    spread = latency.end_to_text_ms if wanted.stage == "end_to_text_ms" else latency.end_to_first_audio_ms
    measured = spread.p50 if wanted.percentile == 50 else spread.p95
    if measured is None:
        return False, "nothing was measured"
    return measured <= wanted.ms, f"{measured:.0f} ms of {spread.count}, at most {wanted.ms:.0f} ms"


def _unbroken(turns: Sequence[TurnRecorded], stored: int) -> tuple[bool, str]:
    # A turn of several people is reported once for each; the same person twice in it is a turn written twice.
    parts = [(turn.seq, turn.speaker_id) for turn in turns]
    numbers = {seq for seq, _ in parts}
    twice = sorted({seq for seq, speaker in parts if parts.count((seq, speaker)) > 1})
    missing = sorted(set(range(stored, max(numbers, default=stored - 1) + 1)) - numbers)
    reasons = [f"written twice: {_listed(twice)}"] if twice else []
    reasons += [f"missing: {_listed(missing)}"] if missing else []
    if not numbers:
        return False, "no turn was recorded"
    return not reasons, "; ".join(reasons) or f"turns {min(numbers)} to {max(numbers)}"


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers[:10])) + (" …" if len(numbers) > 10 else "")


def _timeline_complete(heard: Sequence[UtteranceHeard], turns: Sequence[TurnRecorded]) -> tuple[bool, str]:
    spoken: dict[str, list[str]] = {}
    for utterance in sorted(heard, key=lambda one: one.started_at):
        spoken.setdefault(str(utterance.speaker_id), []).append(utterance.text)
    written: dict[str, list[str]] = {}
    for turn in sorted(turns, key=lambda one: one.seq):
        if turn.kind == "speech":
            written.setdefault(turn.speaker_id, []).append(turn.text)
    wrong = 0
    for speaker in spoken.keys() | written.keys():
        wrong += word_errors(" ".join(spoken.get(speaker, [])), " ".join(written.get(speaker, []))).errors
    total = sum(len(texts) for texts in spoken.values())
    return total > 0 and not wrong, f"{total} utterances, {wrong} words missing or twice"
