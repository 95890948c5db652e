"""Judge whom the bot answered, when it was silent, and what came to the servers behind it. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from rehearsal.judge.evidence import holds, sounds_like, where
from rehearsal.report.report import ExpectationResult
from rehearsal.script.expectations import ModelKnew, RealtimeSessions, Recorded, Silent, Thought, ToolCalled, Truncated

if TYPE_CHECKING:
    from rehearsal.judge.evidence import Evidence

TakingPart: TypeAlias = Silent | Thought | Recorded | ModelKnew | ToolCalled | Truncated | RealtimeSessions


def judge_answers(evidence: Evidence) -> tuple[ExpectationResult, ...]:
    """Return for every line that says whether it is to be answered whether that came true."""
    results = []
    for row in evidence.utterances:
        if row.wants_answer is None:
            continue
        answers = [turn for turn in evidence.bot_turns if turn.answers == row.step]
        detail = f'answered: "{answers[0].text}"' if answers else "not answered"
        name = f"{'answered' if row.wants_answer else 'not answered'} {row.step}"
        results.append(ExpectationResult(name, bool(answers) is row.wants_answer, detail))
    return tuple(results)


def taken_part(wanted: TakingPart, evidence: Evidence) -> tuple[bool, str]:
    """Return whether one of these promises was kept, and why."""
    match wanted:
        case Silent():
            return _silent(wanted, evidence)
        case Thought():
            return _thought(wanted, evidence)
        case Recorded():
            own = [turn.text for turn in evidence.turns if turn.speaker_id == evidence.speaker_ids[wanted.who]]
            found = next((text for text in own if wanted.contains in text), None)
            detail = f"{len(own)} turns of {wanted.who}, none of them with it" if found is None else f'"{found}"'
            return (found is not None) is wanted.value, detail
        case ModelKnew():
            payloads = [turn.payload for turn in evidence.bot_turns if turn.answers == wanted.to and turn.payload]
            if not payloads:
                return False, "what the model was sent for it is not known, or the bot did not answer"
            holding = [part for part in payloads[-1] if wanted.contains in part.content]
            return bool(holding), ", ".join(where(part) for part in holding) or "no part of what it was sent has it"
        case ToolCalled():
            told = [use.told for use in evidence.servers.tools if use.name == wanted.name]
            others = ", ".join(use.name for use in evidence.servers.tools) or "none"
            if not told:
                return False, f"tools that were called: {others}"
            missing = [word for word in wanted.words if not any(holds(text, word) for text in told)]
            return not missing, f"missing {', '.join(missing)}" if missing else f"{len(told)} times"
        case Truncated():
            return _truncated(wanted, evidence)
        case RealtimeSessions():
            count = evidence.servers.realtime_sessions
            return count == wanted.count, f"{count} sessions"


def _silent(wanted: Silent, evidence: Evidence) -> tuple[bool, str]:
    if wanted.since not in evidence.marks or (wanted.until and wanted.until not in evidence.marks):
        return False, "the step was not reached"
    since = evidence.marks[wanted.since][1] + wanted.within_s
    until = evidence.marks[wanted.until][0] if wanted.until else float("inf")
    spoken = [
        turn
        for turn in evidence.bot_turns
        if turn.at_s < until and (turn.at_s if turn.fell_silent_s is None else turn.fell_silent_s) > since
    ]
    span = f"{since:.1f} s to " + (f"{until:.1f} s" if wanted.until else "the end")
    return not spoken, "; ".join(f'at {turn.at_s:.1f} s: "{turn.text}"' for turn in spoken) or f"silent from {span}"


def _thought(wanted: Thought, evidence: Evidence) -> tuple[bool, str]:
    if wanted.since not in evidence.marks:
        return False, "the step was not reached"
    since = evidence.marks[wanted.since][1]
    thoughts = [turn for turn in evidence.bot_turns if turn.unasked]
    told = "; ".join(f'{turn.at_s - since:.1f} s after it: "{turn.heard_by_others}"' for turn in thoughts)
    kept = any(
        turn.at_s >= since + wanted.after_s
        and turn.heard_by_others
        and all(sounds_like(turn.heard_by_others, words) for words in wanted.all_of)
        for turn in thoughts
    )
    return kept, told or "the bot said nothing of its own accord"


def _truncated(wanted: Truncated, evidence: Evidence) -> tuple[bool, str]:
    answers = [turn for turn in evidence.bot_turns if turn.answers == wanted.to and turn.interrupted]
    if not answers or answers[-1].fell_silent_s is None:
        return False, "no answer to it was broken off, or when it fell silent is not known"
    heard_ms = 1000 * (answers[-1].fell_silent_s - answers[-1].at_s)
    told = evidence.servers.heard_ms
    if not told:
        return False, f"heard for {heard_ms:.0f} ms; the model was told nothing"
    nearest = min(told, key=lambda each: abs(each - heard_ms))
    return abs(nearest - heard_ms) <= wanted.within_ms, f"heard for {heard_ms:.0f} ms, told to the model: {nearest} ms"
