"""The statements of a batch of turns: sentences and clauses with what they say, answers together with their questions.

An answer or a correction that can't be understood alone ('It's 450 pounds', 'No, make that nine') is one statement of
two turns with what it is about.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from compaction.language.clauses import statements
from compaction.language.meaning import NO_NAMES, Meaning, answers, meaning, replaces
from compaction.language.text import as_sentence, plain
from compaction.model import FactKind, TurnKind
from compaction.summary.denials import denies, may_be_about, says_no
from compaction.summary.port import MAX_FACT_CHARS, REACH_TURNS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from compaction.model import Seq, Turn

# A question may have so many sentences between it and a bare answer.
_ANSWER_REACH = 3
# What speaks of fewer things than this needs what was said before.
_STANDS_ALONE = 2


@dataclass(frozen=True, slots=True)
class SpokenStatement:
    """One statement. `turns`: where it was said; `speaker`: who said the first of it, `who`: who said the last of it.

    `says`: what it says. `position`: its place in the batch. `answered`: it is a question that has its answer. `asked`:
    what the turn says that it answers with a no.
    """

    turns: tuple[Seq, ...]
    at: float
    speaker: str
    who: str
    text: str
    says: Meaning
    position: int
    by_bot: bool = False
    membership: bool = False
    answered: bool = False
    asked: Meaning | None = None


def names_in(turns: Iterable[Turn], more: Iterable[str] = ()) -> frozenset[str]:
    """Return the names in these turns: of their speakers, and words with a capital letter inside a sentence."""
    found = {word.casefold() for each in more for word in each.split()}
    for turn in turns:
        for part in turn.parts:
            found.update(word.casefold() for word in plain(part.speaker).split())
            for each in statements(part.text, MAX_FACT_CHARS):
                found |= meaning(each).names
    return frozenset(found)


def statements_of(
    turns: Sequence[Turn], before: Sequence[Turn] = (), names: frozenset[str] = NO_NAMES
) -> list[SpokenStatement]:
    """Return the statements of `turns` in order. `before`: turns just before them, which answers may be about."""
    said = [*_said(before, names), *_said(turns, names)]
    said = [replace(each, position=position) for position, each in enumerate(said)]
    first = turns[0].seq if turns else 0
    made: list[SpokenStatement] = []
    asked: list[SpokenStatement] = []
    answered: set[int] = set()
    for each in said:
        about = _subject(said, each)
        if about is not None and (joined := _joined(about, each, names)) is not None:
            made.append(joined)
            if not each.says.echoes:
                answered.add(about.position)
        else:
            made.append(each)
            answered.update(question.position for question in _questions(asked, each))
        asked += [each] if each.says.asks else []
    return [replace(each, answered=each.position in answered) for each in made if each.turns[-1] >= first]


def _said(turns: Iterable[Turn], names: frozenset[str]) -> Iterable[SpokenStatement]:
    for turn in turns:
        if turn.kind is TurnKind.EFFECT:
            continue
        for part in turn.parts:
            for each in statements(part.text, MAX_FACT_CHARS):
                text = as_sentence(each, MAX_FACT_CHARS)
                if text:
                    yield SpokenStatement(
                        turns=(turn.seq,),
                        at=turn.started_at,
                        speaker=plain(part.speaker),
                        who=plain(part.speaker),
                        text=text,
                        says=meaning(text, names),
                        position=0,
                        by_bot=turn.kind is TurnKind.ASSISTANT,
                        membership=turn.kind is TurnKind.MEMBERSHIP,
                    )


def _subject(said: Sequence[SpokenStatement], answer: SpokenStatement) -> SpokenStatement | None:
    """Return the question or statement that a statement needs to be understood, None if it stands alone."""
    says = answer.says
    if says.asks or answer.by_bot or answer.membership or says.kind is FactKind.OPEN:
        return None
    if _is_of_oneself_alone(says):
        return _question_before(said, answer)
    if not (says.about or says.refers) or _is_chatter(says):
        return None
    before = said[max(0, answer.position - _ANSWER_REACH) : answer.position]
    if says.echoes:
        return next((each for each in reversed(before) if each.says.own and each.who != answer.who), None)
    if before and (_denies_a_value(answer, before[-1]) or (says.refers and _points_back(answer, before[-1]))):
        return before[-1]
    if len(says.topics | says.names) >= _STANDS_ALONE or (says.own and not says.refers and not says.announces):
        return None
    for each in reversed(before):
        if each.says.asks and not _is_chatter(each.says) and each.says.about and each.turns != answer.turns:
            return each
    # 'No, make that nine' takes the place of the last statement with a value of that kind.
    if says.announces and says.values and not says.topics:
        for each in reversed(said[: answer.position]):
            if answer.turns[0] - each.turns[0] > REACH_TURNS:
                break
            if each.says.values and each.says.topics and not each.says.asks:
                return each
    return None


def _is_of_oneself_alone(says: Meaning) -> bool:
    """Return whether somebody says only that it is they: 'Me', 'I'll'. 'Not me' leaves open who it is, and 'I'm sorry'
    or 'I'm back' says something else.
    """
    return says.own and not (says.about or says.negated or says.refers or says.echoes or says.is_state)


def _question_before(said: Sequence[SpokenStatement], answer: SpokenStatement) -> SpokenStatement | None:
    """Return the question of somebody else just before; what says nothing alone may stand between ('Not me')."""
    before = said[max(0, answer.position - _ANSWER_REACH) : answer.position]
    last = next((each for each in reversed(before) if each.says.about), None)
    if last is None or not last.says.asks or _is_chatter(last.says) or last.who == answer.who:
        return None
    return last


def _points_back(answer: SpokenStatement, question: SpokenStatement) -> bool:
    """Return whether a statement that needs what was said before needs the question just before it.

    It denies it, or points back to it instead of saying its words again. 'That tent is heavy' can be understood alone.
    """
    asked, says = question.says, answer.says
    if not asked.asks or not asked.about or question.who == answer.who:
        return False
    return says.negated or says.about.isdisjoint(asked.about)


def _denies_a_value(answer: SpokenStatement, told: SpokenStatement) -> bool:
    """Return whether a statement says no to somebody else's just before, and has another value for it."""
    return bool(answer.says.values and told.says.values) and answer.who != told.who and says_no(answer.text)


def _joined(about: SpokenStatement, answer: SpokenStatement, names: frozenset[str]) -> SpokenStatement | None:
    between = " " if about.who == answer.who else f" {answer.who}: "
    text = f"{about.text}{between}{answer.text}"
    if len(text) > MAX_FACT_CHARS:
        return None
    whole = meaning(f"{about.text.rstrip(' ?.!？')}, {answer.text}", names)
    says = replace(
        whole,
        values=answer.says.values or whole.values,
        own=answer.says.own,
        weight=max(whole.weight, answer.says.weight, 1.0),
        kind=whole.kind if whole.kind is not FactKind.OPEN else FactKind.OTHER,
        asks=False,
        announces=answer.says.announces,
    )
    return replace(
        answer,
        turns=tuple(sorted({*about.turns, *answer.turns})),
        at=about.at,
        speaker=about.speaker,
        text=text,
        says=says,
        asked=about.says if says_no(answer.text) else None,
    )


def corrects(new: SpokenStatement, old: Meaning, *, same_speaker: bool) -> bool:
    """Return whether a statement takes the place of what somebody said before."""
    if new.asked is None:
        return replaces(new.says, old, same_speaker=same_speaker)
    if not may_be_about(new.asked, old):
        return False
    return denies(new.says, new.asked, old) or replaces(new.says, old, same_speaker=same_speaker)


def is_answer(statement: SpokenStatement, question: Meaning, *, asked_by: str, asked_in: Seq) -> bool:
    """Return whether a statement answers a question that somebody else asked shortly before, in the turn `asked_in`."""
    turns_after = statement.turns[-1] - asked_in
    return (
        statement.who != asked_by
        and 0 <= turns_after <= REACH_TURNS
        and answers(statement.says, question, at_once=turns_after <= 1)
    )


def _questions(asked: Sequence[SpokenStatement], answer: SpokenStatement) -> Iterable[SpokenStatement]:
    """Yield those of the questions before a statement (`asked`) that it answers."""
    for each in reversed(asked):
        if answer.turns[0] - each.turns[0] > REACH_TURNS:
            break
        if is_answer(answer, each.says, asked_by=each.who, asked_in=each.turns[0]):
            yield each


def _is_chatter(says: Meaning) -> bool:
    return bool(says.about) and says.weight < (0.8 if says.asks else 1.0)
