"""Judge a written evening by what was observed of it, and make its report. Pure.

What must hold is the same for all of them: every word stands once under its speaker, who asks is answered with what
was asked for and nobody else, each prompt stands for every turn before it and is no larger than it may be, folds follow
each other without a gap, and nothing goes wrong.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING

from rehearsal.judge.judge import machine
from rehearsal.report.report import (
    BotTurnReport,
    CompactionReport,
    ExpectationResult,
    LatencyReport,
    Report,
    Spread,
    UtteranceReport,
)
from rehearsal.script.written_evening import name_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rehearsal.runner.observation import ContextBuilt, ReplySpoken
    from rehearsal.runner.written_record import Said, WrittenRecord
    from rehearsal.script.written_evening import Line, WrittenEvening

# Parts of a prompt that stand for turns, by the numbers that they name.
_STANDS_FOR_TURNS = frozenset({"turn", "current", "summary", "eviction_note"})
_SPEECH = "speech"
_NONE = Spread(None, None)


def tally_written(
    evening: WrittenEvening,
    record: WrittenRecord,
    *,
    ids: Mapping[str, str],
    max_prompt_tokens: int,
    clock_s: float,
    duration_s: float,
    ended_by: str = "",
) -> Report:
    """Return the report.

    `ids`: speaker ids by how the file writes people. `clock_s`: how long the evening lasted on the clock that was
    moved, `duration_s` in real time. `ended_by`: why it ended before its end.
    """
    answers = _answers(record)
    expectations = (
        ExpectationResult("reached_the_end", not ended_by, ended_by or f"{_hours(clock_s)} in {duration_s:.0f} s"),
        *(ExpectationResult("wait", passed=False, detail=text) for text in record.failed_waits),
        _every_word(record, ids),
        _unbroken(record),
        _answered(record, answers),
        _nobody_else(record, answers),
        _broken_off(record, answers),
        _prompts_whole(record),
        _prompts_small(record, max_prompt_tokens),
        _folds(record),
        ExpectationResult(
            "nothing_raised",
            not record.problems,
            ", ".join(sorted({one.event for one in record.problems})) or "nothing",
        ),
    )
    return Report(
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
                one.degraded,
            )
            for one in record.folds
        ),
        summary=record.folds[-1].summary if record.folds else "",
        bot_turns=tuple(_bot_turn(record, reply, answers) for reply in record.replies),
        latency=LatencyReport(_NONE, _NONE),
        ended_by=ended_by,
        dropped=dict(Counter(one.dropped_reason for one in record.heard if one.dropped_reason)),
        problems=tuple(f"{one.level}: {one.event}: {one.detail}" for one in record.problems),
        machine=machine(),
        clock_s=round(clock_s, 1),
    )


def lines_of(said: Said) -> Iterator[Line]:
    """Yield what is said in one talk, by everybody."""
    yield from (line for line in (said.talk, said.talk.over, said.talk.broken_off) if line is not None)


def _answers(record: WrittenRecord) -> dict[int, ReplySpoken]:
    """Return the reply to each line that was answered: by the turn that holds its words, each reply once."""
    left = list(record.replies)
    found: dict[int, ReplySpoken] = {}
    for said in record.said:
        seqs = {turn.seq for turn in record.turns if turn.kind == _SPEECH and turn.text == said.talk.say}
        reply = next((one for one in left if one.answer_to in seqs), None)
        if reply is not None:
            left.remove(reply)
            found[said.line] = reply
    return found


def _every_word(record: WrittenRecord, ids: Mapping[str, str]) -> ExpectationResult:
    said = Counter((ids[line.who], line.say) for one in record.said for line in lines_of(one))
    stand = Counter((turn.speaker_id, turn.text) for turn in record.turns if turn.kind == _SPEECH)
    missing, besides = sum((said - stand).values()), sum((stand - said).values())
    detail = f"{_count(said.total(), 'line')}, each once under its speaker"
    if missing or besides:
        detail = f"of {said.total()} lines {missing} are missing, and {besides} stand there that nobody said so"
    return ExpectationResult("timeline_complete", not missing and not besides, detail)


def _unbroken(record: WrittenRecord) -> ExpectationResult:
    seqs = list(dict.fromkeys(turn.seq for turn in record.turns))
    return ExpectationResult("turns_unbroken", seqs == list(range(len(seqs))), _count(len(seqs), "turn"))


def _answered(record: WrittenRecord, answers: Mapping[int, ReplySpoken]) -> ExpectationResult:
    asked = [said for said in record.said if said.talk.answer]
    wrong = [said for said in asked if not _tells(answers.get(said.line), said)]
    if wrong:
        first, reply = wrong[0], answers.get(wrong[0].line)
        told = f'was answered "{reply.text}"' if reply is not None else "was not answered"
        detail = f'{len(wrong)} of {len(asked)} questions are not answered as asked; "{first.talk.say}" {told}'
    else:
        detail = f"{_count(len(asked), 'question')}, each with what was asked for"
    return ExpectationResult("answered", not wrong, detail)


def _tells(reply: ReplySpoken | None, said: Said) -> bool:
    """Return whether a reply has the words; one that was broken off need not come to them."""
    if reply is None:
        return False
    return reply.interrupted or all(words in reply.text for words in said.talk.answer)


def _nobody_else(record: WrittenRecord, answers: Mapping[int, ReplySpoken]) -> ExpectationResult:
    asked = {said.line for said in record.said if said.talk.answer}
    wanted = [reply for line, reply in answers.items() if line in asked]
    unwanted = [reply for reply in record.replies if reply not in wanted]
    detail = f"{_count(len(record.said) - len(asked), 'other line')}, no answer to any"
    if unwanted:
        detail = f'{len(unwanted)} answers that nobody wanted, the first of them "{unwanted[0].text}"'
    return ExpectationResult("not_answered", not unwanted, detail)


def _broken_off(record: WrittenRecord, answers: Mapping[int, ReplySpoken]) -> ExpectationResult:
    meant = {said.line for said in record.said if said.talk.broken_off is not None}
    really = {line for line, reply in answers.items() if reply.interrupted}
    detail = f"{_count(len(meant), 'answer')} broken off, and no other"
    if meant != really:
        detail = (
            f"{len(meant)} were to be broken off, {len(meant & really)} of them and {len(really - meant)} others were"
        )
    return ExpectationResult("interrupted", meant == really, detail)


def _prompts_whole(record: WrittenRecord) -> ExpectationResult:
    lacking = {built.answer_to: missing for built in record.contexts if (missing := _missing(built))}
    detail = f"{_count(len(record.contexts), 'prompt')}, each stands for every turn before it"
    if lacking:
        seq, missing = next(iter(lacking.items()))
        first = f"that for turn {seq} lacks {len(missing)}, from turn {missing[0]}"
        detail = f"{len(lacking)} of {len(record.contexts)} prompts lack turns; {first}"
    return ExpectationResult("every_turn_in_the_prompt", not lacking, detail)


def _missing(built: ContextBuilt) -> list[int]:
    """Return the turns before the one that is answered for which no part of the prompt stands."""
    held: set[int] = set()
    for part in built.parts:
        if part.kind in _STANDS_FOR_TURNS and part.seq_from is not None and part.seq_to is not None:
            held.update(range(part.seq_from, part.seq_to + 1))
    return [seq for seq in range(built.answer_to or 0) if seq not in held]


def _prompts_small(record: WrittenRecord, most: int) -> ExpectationResult:
    largest = max((sum(part.tokens for part in built.parts) for built in record.contexts), default=0)
    return ExpectationResult("prompt_tokens", largest <= most, f"at most {largest} of {most}")


def _folds(record: WrittenRecord) -> ExpectationResult:
    folds = record.folds
    whole = all(earlier.new_cursor == later.old_cursor for earlier, later in pairwise(folds))
    kept = whole and (not folds or folds[0].old_cursor == 0)
    detail = f"{_count(len(folds), 'fold')} without a gap, up to turn {folds[-1].new_cursor if folds else 0}"
    return ExpectationResult("compaction", kept, detail if kept else f"{len(folds)} folds do not follow each other")


def _utterances(record: WrittenRecord, ids: Mapping[str, str]) -> Iterator[UtteranceReport]:
    stand = Counter((turn.speaker_id, turn.text) for turn in record.turns if turn.kind == _SPEECH)
    for said in record.said:
        for line in lines_of(said):
            times = stand[ids[line.who], line.say]
            yield UtteranceReport(
                speaker=name_of(line.who),
                reference=line.say,
                transcript=line.say if times else "",
                wer=0.0 if times else 1.0,
                end_to_text_ms=None,
                step=f"line {said.line}",
                started_s=round(said.at_s, 2),
                heard_as=_heard_as(record, ids[line.who], line.say),
                twice=times > 1,
                wants_answer=bool(line is said.talk and said.talk.answer),
            )


def _heard_as(record: WrittenRecord, speaker_id: str, text: str) -> tuple[str, ...]:
    same = (one for one in record.heard if one.dropped_reason is None and str(one.speaker_id) == speaker_id)
    return tuple(one.utterance_id for one in same if one.text == text)


def _bot_turn(record: WrittenRecord, reply: ReplySpoken, answers: Mapping[int, ReplySpoken]) -> BotTurnReport:
    return BotTurnReport(
        text=reply.text,
        heard_by_others="",
        answers=next((f"line {line}" for line, one in answers.items() if one is reply), ""),
        interrupted=reply.interrupted,
        at_s=round(reply.first_audio_at - record.begun_at, 2),
        payload=next((built.parts for built in reversed(record.contexts) if built.answer_to == reply.answer_to), ()),
    )


def _hours(seconds: float) -> str:
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
