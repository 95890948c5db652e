"""Judges a written evening by its record, and builds its report. The functions are pure.

All written evenings have the same expectations:

- Every word is recorded once under its speaker.
- Each question is answered with the expected words, and nothing else is answered.
- Each answer has a prompt, which covers every turn before it and is within the token limit.
- Folds follow each other without a gap.
- Nothing is logged as an error.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING

from rehearsal.judge.report_builder import machine_facts
from rehearsal.report.report import (
    BotTurnReport,
    CompactionReport,
    ExpectationResult,
    LatencyPercentiles,
    LatencyReport,
    RehearsalReport,
    UtteranceReport,
    count,
)
from rehearsal.script.written_evening import display_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rehearsal.runner.evening_record import EveningRecord, PlayedSpeech
    from rehearsal.runner.observations import ObservedPrompt, ObservedReply
    from rehearsal.script.written_evening import EveningLine, WrittenEvening

# The kinds of prompt parts that cover turns and name the turn numbers.
_COVERING_PARTS = frozenset({"turn", "current", "summary", "eviction_note"})
_SPEECH = "speech"
_NONE = LatencyPercentiles(None, None)


def build_written_report(
    evening: WrittenEvening,
    record: EveningRecord,
    *,
    ids: Mapping[str, str],
    max_prompt_tokens: int,
    clock_s: float,
    duration_s: float,
    ended_by: str = "",
) -> RehearsalReport:
    """Return the report of a written evening.

    `ids`: speaker ids by the names that the file uses. `clock_s`: how long the evening lasted on the virtual clock.
    `duration_s`: how long it lasted in real time. `ended_by`: why the evening ended early, or empty.
    """
    answers = _answers(record)
    expectations = (
        ExpectationResult("reached_the_end", not ended_by, ended_by or f"{_hours(clock_s)} in {duration_s:.0f} s"),
        *(ExpectationResult("wait", passed=False, detail=text) for text in record.failed_waits),
        _timeline_complete(record, ids),
        _turns_unbroken(record),
        _answered(record, answers),
        _nothing_else_answered(record, answers),
        _interrupted(record, answers),
        _prompts_cover_all_turns(record),
        _prompts_within_limit(record, max_prompt_tokens),
        _compaction(record),
        ExpectationResult(
            "nothing_raised",
            not record.problems,
            ", ".join(sorted({one.event for one in record.problems})) or "nothing",
        ),
    )
    return RehearsalReport(
        passed=all(result.passed for result in expectations),
        scenario=evening.title,
        started=(datetime.now(UTC) - timedelta(seconds=duration_s)).isoformat(timespec="seconds"),
        duration_s=round(duration_s, 1),
        expectations=expectations,
        wer=None,
        utterances=tuple(_utterances(record, ids)),
        packets={},
        compactions=tuple(
            CompactionReport(
                one.old_cursor,
                one.new_cursor,
                one.covered_through_turn,
                one.summary_chars,
                round(one.latency_ms, 1),
            )
            for one in record.compactions
        ),
        summary=record.compactions[-1].summary if record.compactions else "",
        bot_turns=tuple(_bot_turn(record, reply, answers) for reply in record.replies),
        latency=LatencyReport(_NONE, _NONE),
        ended_by=ended_by,
        dropped=dict(Counter(one.dropped_reason for one in record.utterances if one.dropped_reason)),
        problems=tuple(f"{one.level}: {one.event}: {one.detail}" for one in record.problems),
        machine=machine_facts(),
        clock_s=round(clock_s, 1),
    )


def lines_in(speech: PlayedSpeech) -> Iterator[EveningLine]:
    """Yield every line of one speech event."""
    yield from (line for line in (speech.event, speech.event.over, speech.event.broken_off) if line is not None)


def _answers(record: EveningRecord) -> dict[int, ObservedReply]:
    """Return the replies to answered lines, by the number of the line in the file.

    A reply belongs to a line if it answers a turn whose text is that line.
    """
    left = list(record.replies)
    found: dict[int, ObservedReply] = {}
    for speech in record.speeches:
        seqs = {turn.seq for turn in record.turns if turn.kind == _SPEECH and turn.text == speech.event.say}
        reply = next((one for one in left if one.answer_to in seqs), None)
        if reply is not None:
            left.remove(reply)
            found[speech.line] = reply
    return found


def _timeline_complete(record: EveningRecord, ids: Mapping[str, str]) -> ExpectationResult:
    said = Counter((ids[line.who], line.say) for one in record.speeches for line in lines_in(one))
    recorded = Counter((turn.speaker_id, turn.text) for turn in record.turns if turn.kind == _SPEECH)
    missing, extra = sum((said - recorded).values()), sum((recorded - said).values())
    detail = f"{count(said.total(), 'line')}, each once under its speaker"
    if missing or extra:
        detail = f"{missing} of {count(said.total(), 'line')} missing, and {extra} recorded that nobody said"
    return ExpectationResult("timeline_complete", not missing and not extra, detail)


def _turns_unbroken(record: EveningRecord) -> ExpectationResult:
    seqs = list(dict.fromkeys(turn.seq for turn in record.turns))
    return ExpectationResult("turns_unbroken", seqs == list(range(len(seqs))), count(len(seqs), "turn"))


def _answered(record: EveningRecord, answers: Mapping[int, ObservedReply]) -> ExpectationResult:
    questions = [speech for speech in record.speeches if speech.event.answer]
    wrong = [speech for speech in questions if not _answers_as_expected(answers.get(speech.line), speech)]
    if wrong:
        first, reply = wrong[0], answers.get(wrong[0].line)
        outcome = f'was answered "{reply.text}"' if reply is not None else "was not answered"
        detail = (
            f'{len(wrong)} of {len(questions)} questions are not answered as expected; "{first.event.say}" {outcome}'
        )
    else:
        detail = f"{count(len(questions), 'question')}, each with the expected words"
    return ExpectationResult("answered", not wrong, detail)


def _answers_as_expected(reply: ObservedReply | None, speech: PlayedSpeech) -> bool:
    """Return whether a reply has the expected words. A reply that was broken off may lack them."""
    if reply is None:
        return False
    return reply.interrupted or all(words in reply.text for words in speech.event.answer)


def _nothing_else_answered(record: EveningRecord, answers: Mapping[int, ObservedReply]) -> ExpectationResult:
    questions = {speech.line for speech in record.speeches if speech.event.answer}
    expected = [reply for line, reply in answers.items() if line in questions]
    unexpected = [reply for reply in record.replies if reply not in expected]
    detail = f"{count(len(record.speeches) - len(questions), 'other line')}, none answered"
    if unexpected:
        detail = f'{count(len(unexpected), "unexpected answer")}, the first of them "{unexpected[0].text}"'
    return ExpectationResult("not_answered", not unexpected, detail)


def _interrupted(record: EveningRecord, answers: Mapping[int, ObservedReply]) -> ExpectationResult:
    expected = {speech.line for speech in record.speeches if speech.event.broken_off is not None}
    actual = {line for line, reply in answers.items() if reply.interrupted}
    detail = f"{count(len(expected), 'answer')} broken off, and no other"
    if expected != actual:
        detail = (
            f"{len(expected & actual)} of {len(expected)} answers were broken off as expected, "
            f"and {len(actual - expected)} others"
        )
    return ExpectationResult("interrupted", expected == actual, detail)


def _prompts_cover_all_turns(record: EveningRecord) -> ExpectationResult:
    known = {built.answer_to for built in record.prompts}
    unknown = [reply for reply in record.replies if reply.answer_to not in known]
    lacking = {built.answer_to: missing for built in record.prompts if (missing := _missing(built))}
    detail = f"{count(len(record.prompts), 'prompt')}, each covers every turn before it"
    if lacking:
        seq, missing = next(iter(lacking.items()))
        first = f"that for turn {seq} lacks {len(missing)}, from turn {missing[0]}"
        detail = f"{len(lacking)} of {len(record.prompts)} prompts lack turns; {first}"
    if unknown:
        detail = f'{count(len(unknown), "answer")} without a prompt, the first of them "{unknown[0].text}"'
    return ExpectationResult("every_turn_in_the_prompt", not lacking and not unknown, detail)


def _missing(built: ObservedPrompt) -> list[int]:
    """Return the turns before the answered one that no part of the prompt covers."""
    covered: set[int] = set()
    for part in built.parts:
        if part.kind in _COVERING_PARTS and part.seq_from is not None and part.seq_to is not None:
            covered.update(range(part.seq_from, part.seq_to + 1))
    return [seq for seq in range(built.answer_to or 0) if seq not in covered]


def _prompts_within_limit(record: EveningRecord, most: int) -> ExpectationResult:
    largest = max((sum(part.tokens for part in built.parts) for built in record.prompts), default=0)
    return ExpectationResult("prompt_tokens", largest <= most, f"at most {largest} of {most}")


def _compaction(record: EveningRecord) -> ExpectationResult:
    compactions = record.compactions
    connected = all(earlier.new_cursor == later.old_cursor for earlier, later in pairwise(compactions))
    met = connected and (not compactions or compactions[0].old_cursor == 0)
    last = compactions[-1].new_cursor if compactions else 0
    # A run of notes alone folds no turns.
    folds = sum(each.new_cursor > each.old_cursor for each in compactions)
    detail = f"{count(folds, 'fold')} without a gap, up to turn {last}"
    return ExpectationResult("compaction", met, detail if met else f"{folds} folds do not follow each other")


def _utterances(record: EveningRecord, ids: Mapping[str, str]) -> Iterator[UtteranceReport]:
    recorded = Counter((turn.speaker_id, turn.text) for turn in record.turns if turn.kind == _SPEECH)
    for speech in record.speeches:
        for line in lines_in(speech):
            times = recorded[ids[line.who], line.say]
            yield UtteranceReport(
                speaker=display_name(line.who),
                reference=line.say,
                transcript=line.say if times else "",
                wer=0.0 if times else 1.0,
                end_to_text_ms=None,
                step=f"line {speech.line}",
                started_s=round(speech.at_s, 2),
                heard_as=_heard_as(record, ids[line.who], line.say),
                twice=times > 1,
                wants_answer=bool(line is speech.event and speech.event.answer),
            )


def _heard_as(record: EveningRecord, speaker_id: str, text: str) -> tuple[str, ...]:
    same = (one for one in record.utterances if one.dropped_reason is None and str(one.speaker_id) == speaker_id)
    return tuple(one.utterance_id for one in same if one.text == text)


def _bot_turn(record: EveningRecord, reply: ObservedReply, answers: Mapping[int, ObservedReply]) -> BotTurnReport:
    return BotTurnReport(
        text=reply.text,
        heard_by_others="",
        answers=next((f"line {line}" for line, one in answers.items() if one is reply), ""),
        interrupted=reply.interrupted,
        at_s=round(reply.first_audio_at - record.live_at, 2),
        payload=next((built.parts for built in reversed(record.prompts) if built.answer_to == reply.answer_to), ()),
    )


def _hours(seconds: float) -> str:
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"
