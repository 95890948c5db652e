"""The extractive summariser: picks the sentences of a batch that are worth keeping. No model, deterministic.

A sentence is worth the weights of its terms (TF-IDF over the batch and the known facts), more with cues of something
lasting or decided, divided by its length to the power of 0.7. Sentences are chosen greedily by maximal marginal
relevance (Carbonell and Goldstein, 1998): the more of it the same person has said, the less it is worth. What different
people say, or say with the other sign, is never alike. Only what a longer statement of the person says wholly is left
out. Each third of the batch has at least one sentence.
"""

from __future__ import annotations

from collections import Counter
from math import fsum, log
from typing import TYPE_CHECKING

from compaction.language.meaning import Meaning, meaning, replaces
from compaction.language.text import as_sentence, plain, sentences, words
from compaction.model import Fact, FactKind, Importance, Strategy
from compaction.notes import condense_notes
from compaction.summary.density import VALUE_WEIGHT, cost, density, substance
from compaction.summary.port import (
    CHAPTER_FACTS,
    MAX_CHAPTER_GIST_CHARS,
    MAX_FACT_CHARS,
    MAX_FACTS,
    MAX_GIST_CHARS,
    MAX_SUMMARY_CHARS,
    ChapterFold,
    Fold,
)
from compaction.summary.statements import SpokenStatement, corrects, is_answer, names_in, statements_of
from compaction.summary.subjects import count_names, language_of_texts, rank_weights, subjects_in, subjects_sentence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from compaction.model import Note, Seq, Turn
    from compaction.summary.port import ChapterRequest, FoldRequest, KnownFact

# The most characters of facts per batch. A transcript of ten turns has about a thousand, so everything but filler fits.
FACTS_CHARS = 1_000
# Sentences with a lower weight are chatter; a question has 0.8 of the weight of its words.
_LEAST_WEIGHT = 1.0
_LEAST_QUESTION_WEIGHT = 0.8
# A sentence must speak of so much: words count 1, names and values 2, and a cue of something lasting or decided 1.
_LEAST_WORTH = 2.0
# The weights from which a fact is important, and from which it must not be lost.
_IMPORTANT = 1.3
_VITAL = 2.3
# The parts of a gist that may name what the batch or chapter was about.
_SUBJECTS_CHARS = 130
_CHAPTER_SUBJECTS_CHARS = 220
# Only the best so many sentences of a batch are compared with each other.
_SHORTLIST = 120
_STRETCHES = 3
# How much a likeness to what the same person said takes from a sentence.
_LIKENESS = 0.8
# So many names, values and topics make a statement.
_STATES_SOMETHING = 2
# A sentence of the bot repeats people if they said this share of it.
_REPEATS = 0.7
# Of a paragraph made again, the share for the batch.
_NEWEST_SHARE = 0.35


class ExtractiveSummariser:
    """The summariser that needs no model. It is used while the model fails."""

    @property
    def name(self) -> str:
        """Return the kind of summariser."""
        return "extractive"

    @property
    def model(self) -> str:
        """Return an empty string, because no model is used."""
        return ""

    async def fold(self, request: FoldRequest) -> Fold:
        """Return the batch's best sentences as facts, and the best of these as its gist. Never fails."""
        if request.strategy is Strategy.RECURSIVE:
            return extract_paragraph(request)
        facts = extract_facts(
            request.turns, request.notes, start=request.start, known=request.known, before=request.before
        )
        return Fold(gist=make_gist(facts, request.turns), facts=facts)

    async def fold_chapter(self, request: ChapterRequest) -> ChapterFold:
        """Return the chapter that `extract_chapter` makes. Never fails."""
        return extract_chapter(request)


def extract_facts(
    turns: Sequence[Turn],
    notes: Sequence[Note] = (),
    *,
    start: Seq,
    known: Sequence[KnownFact] = (),
    before: Sequence[Turn] = (),
) -> tuple[Fact, ...]:
    """Return the facts of a batch in the order of talk, at most 1,000 characters and 16 facts.

    `start`: the batch's first seq, used for facts from notes. A fact that takes the place of one of `known` names it in
    `supersedes`. If somebody takes a statement of the batch back, only the later one is kept. `before`: the turns just
    before the batch, which an answer or a correction in it may be about.
    """
    names = names_in([*before, *turns], (each.fact.speaker for each in known))
    # Without the batch's names, so that what they say is read once.
    before_it = [(each, meaning(each.fact.text)) for each in known if each.fact.text]
    said = [each for each in statements_of(turns, before, names) if not each.answered and _is_worth_keeping(each)]
    told = [*(each.says for each in said if not each.by_bot), *(each for _, each in before_it)]
    said = [each for each in said if not each.by_bot or _is_news(each, told)]
    seen = list(_seen(notes, start))
    weigh = _term_weights([*(each.says for each in said), *(each for _, each in before_it)])
    room = FACTS_CHARS - sum(len(fact.text) + 1 for fact in seen)
    chosen = _choose(said, weigh, room=room, most=MAX_FACTS - len(seen))
    return (*(_fact(each, _replaced_by(each, before_it)) for each in chosen), *seen)


def make_gist(facts: Sequence[Fact], turns: Sequence[Turn]) -> str:
    """Return at most 300 characters for the whole batch: what it was about, and its weightiest facts.

    Without either it tells who spoke.
    """
    texts = [part.text for turn in turns for part in turn.parts]
    speakers = {part.speaker for turn in turns for part in turn.parts}
    counts = count_names(texts, names_in(turns), speakers)
    about = subjects_sentence(counts, language=language_of_texts(texts), max_chars=_SUBJECTS_CHARS)
    told = _in_order(facts, MAX_GIST_CHARS - len(about) - 1)
    return " ".join(each for each in (about, told) if each) or empty_gist(turns)


def empty_gist(turns: Sequence[Turn]) -> str:
    """Return the gist of turns without any fact: who spoke."""
    speakers = list(dict.fromkeys(part.speaker for turn in turns for part in turn.parts))
    who = ", ".join(speakers[:8])
    return as_sentence(f"{who} talked; nothing in it needs keeping" if who else "Nothing was said", MAX_GIST_CHARS)


def extract_chapter(request: ChapterRequest) -> ChapterFold:
    """Return a chapter without a model: what its parts were about, and of each part in turn its weightiest fact."""
    weights = rank_weights((subjects_in(part.gist), 1.0) for part in request.parts)
    language = language_of_texts([part.gist for part in request.parts])
    about = subjects_sentence(weights, language=language, max_chars=_CHAPTER_SUBJECTS_CHARS)
    ranked = [sorted(part.facts, key=lambda each: -_density(each.fact)) for part in request.parts]
    turns = max((len(each) for each in ranked), default=0)
    by_turns = [each[place] for place in range(turns) for each in ranked if place < len(each)]
    told = _in_order([each.fact for each in by_turns], MAX_CHAPTER_GIST_CHARS - len(about) - 1)
    gist = " ".join(each for each in (about, told) if each)
    if not gist:
        share = MAX_CHAPTER_GIST_CHARS // len(request.parts)
        beginnings = [as_sentence(next(iter(sentences(part.gist)), part.gist), share - 1) for part in request.parts]
        gist = " ".join(dict.fromkeys(beginnings))
    weightiest = sorted(by_turns, key=lambda each: -each.fact.importance)
    return ChapterFold(gist=gist, refs=tuple(each.ref for each in weightiest[:CHAPTER_FACTS]))


def extract_paragraph(request: FoldRequest) -> Fold:
    """Return a paragraph of the previous one's best sentences and the batch's. Used by the recursive strategy while the
    model fails.
    """
    facts = extract_facts(request.turns, request.notes, start=request.start, known=request.known, before=request.before)
    gist = make_gist(facts, request.turns)
    unchanged = request.previous and not any(turn.parts for turn in request.turns)
    newest = _in_order(facts, int(MAX_SUMMARY_CHARS * _NEWEST_SHARE)) or ("" if unchanged else gist)
    said = [meaning(fact.text) for fact in facts]
    kept = [
        each
        for each in sentences(request.previous or "")
        if not any(
            replaces(new, meaning(each.partition(": ")[2] or each), same_speaker=each.startswith(f"{fact.speaker}: "))
            for fact, new in zip(facts, said, strict=True)
        )
    ]
    room = MAX_SUMMARY_CHARS - len(newest) - 1
    ranked = sorted(range(len(kept)), key=lambda place: -meaning(kept[place]).weight / cost(len(kept[place])))
    places: list[int] = []
    for place in ranked:
        if len(kept[place]) < room:
            places.append(place)
            room -= len(kept[place]) + 1
    text = " ".join(each for each in (*(kept[place] for place in sorted(places)), newest) if each)
    return Fold(gist=gist, facts=(), form=Strategy.RECURSIVE.value, paragraph=text)


def _replaced_by(statement: SpokenStatement, known: Sequence[tuple[KnownFact, Meaning]]) -> tuple[str, ...]:
    """Return the refs of the facts that a statement takes the place of, and of the questions that it answers."""
    return tuple(
        each.ref
        for each, says in known
        if (not statement.by_bot or each.fact.speaker == statement.who)
        and (
            corrects(statement, says, same_speaker=each.fact.speaker == statement.who)
            or _answers(statement, each.fact, says)
        )
    )


def _answers(statement: SpokenStatement, fact: Fact, says: Meaning) -> bool:
    if not says.asks or statement.says.asks:
        return False
    is_joined = not {*fact.turns}.isdisjoint(statement.turns)
    return is_joined or is_answer(statement, says, asked_by=fact.speaker, asked_in=fact.turns[-1])


def _is_worth_keeping(statement: SpokenStatement) -> bool:
    says = statement.says
    if says.weight < (_LEAST_QUESTION_WEIGHT if says.asks else _LEAST_WEIGHT):
        return False
    return substance(says) + (says.weight > _LEAST_WEIGHT or says.own or says.asks) >= _LEAST_WORTH


def _is_news(statement: SpokenStatement, told: Iterable[Meaning]) -> bool:
    """Return whether a sentence of the bot says something definite that no person had said, nor is said to have."""
    says = statement.says
    definite = bool(says.values) or says.weight > _LEAST_WEIGHT + 0.5
    return definite and not says.asks and not says.reports and not any(_repeated(says, each) for each in told)


def _repeated(own: Meaning, told: Meaning) -> bool:
    return own.values <= told.values and len(own.about & told.about) >= _REPEATS * len(own.about - own.names)


def _term_weights(said: Sequence[Meaning]) -> Callable[[Meaning], float]:
    """Return the function that weighs a sentence by its terms; a term of fewer sentences weighs more."""
    counts = Counter(term for each in said for term in each.about)
    whole = log(1.0 + len(said)) or 1.0

    def weigh(says: Meaning) -> float:
        # fsum, because the order of a set differs between processes and the choice must not.
        rare = fsum(log(1.0 + len(said) / counts[term]) / whole for term in says.topics if counts[term])
        # Names that come again are who and what the talk is about.
        named = fsum(1.0 + log(counts[term]) / whole for term in says.names if counts[term])
        return rare + VALUE_WEIGHT * (named + len(says.values))

    return weigh


def _choose(
    said: Sequence[SpokenStatement], weigh: Callable[[Meaning], float], *, room: int, most: int
) -> list[SpokenStatement]:
    """Return the best statements in the order of talk, within so many characters."""
    worth = {each.position: each.says.weight * weigh(each.says) / cost(len(each.text)) for each in said}
    left = sorted(said, key=lambda each: (-worth[each.position], each.position))[:_SHORTLIST]
    left = [each for each in left if not any(_takes_place(later, each) for later in left)]
    left = _without_repeated(left)
    first, last = min(worth, default=0), max(worth, default=0)
    stretch = {each.position: (each.position - first) * _STRETCHES // (last - first + 1) for each in left}
    likeness = dict.fromkeys(stretch, 0.0)
    chosen: list[SpokenStatement] = []
    while left and len(chosen) < most:
        open_stretches = {stretch[each.position] for each in left} - {stretch[each.position] for each in chosen}
        best = max(
            left,
            key=lambda each: (
                stretch[each.position] in open_stretches,
                worth[each.position] * (1.0 - _LIKENESS * likeness[each.position]),
                -each.position,
            ),
        )
        left.remove(best)
        length = len(best.text) + len(best.speaker) + 3
        # One word alone states nothing beside what has it: 'Ninth.' after 'The ninth works, I think.'
        is_repeated = likeness[best.position] >= 1.0 and len(best.says.about) < _STATES_SOMETHING
        if length > room or is_repeated:
            continue
        chosen.append(best)
        room -= length
        for each in left:
            likeness[each.position] = max(likeness[each.position], _alike(best, each))
    return sorted(chosen, key=lambda each: each.position)


def _takes_place(new: SpokenStatement, old: SpokenStatement) -> bool:
    return (
        new.position > old.position
        and (old.by_bot or not new.by_bot)
        and corrects(new, old.says, same_speaker=new.who == old.who)
    )


def _without_repeated(said: Sequence[SpokenStatement]) -> list[SpokenStatement]:
    """Return the statements without those that another one says wholly; the order stays."""
    told = {each.position: words(each.text) for each in said}

    def says_all_of(one: SpokenStatement, other: SpokenStatement) -> bool:
        mine, theirs = told[one.position], told[other.position]
        is_more = (len(mine), -one.position) > (len(theirs), -other.position)
        return is_more and mine[: len(theirs)] == theirs and _manner(one) == _manner(other)

    return [each for each in said if not any(says_all_of(other, each) for other in said)]


def _manner(statement: SpokenStatement) -> tuple[object, ...]:
    """Return what makes the same words another statement: by whom, of whom, denied, asked, supposed or reported."""
    says = statement.says
    return (
        statement.speaker,
        statement.who,
        says.own,
        says.negated,
        says.denied,
        says.asks,
        says.supposes,
        says.reports,
    )


def _alike(chosen: SpokenStatement, other: SpokenStatement) -> float:
    """Return the share of a statement that a chosen one of the same person says, too; none of one with another sign or
    value.
    """
    mine, theirs = chosen.says, other.says
    same = chosen.who == other.who and mine.denied == theirs.denied and mine.values == theirs.values
    return len(mine.about & theirs.about) / len(theirs.about) if same and theirs.about else 0.0


def _fact(statement: SpokenStatement, supersedes: tuple[str, ...]) -> Fact:
    says = statement.says
    return Fact(
        turns=statement.turns,
        kind=FactKind.OTHER if statement.membership else says.kind,
        speaker=statement.speaker,
        at=statement.at,
        text=statement.text,
        supersedes=supersedes,
        subject=_subject_of(statement),
        importance=1 if statement.membership else _importance(says),
    )


def _importance(says: Meaning) -> Importance:
    if says.weight >= _VITAL and not says.asks:
        return 3
    return 2 if says.weight >= _IMPORTANT else 1


def _subject_of(statement: SpokenStatement) -> str:
    """Return whom or what a statement is about: who speaks of themselves, else the first name, else the first topic."""
    if statement.says.own or statement.membership:
        return statement.who
    words = [word.strip(".,;:!?\"'()") for word in statement.text.split()]
    named = [word for word in words if word.casefold().removesuffix("'s") in statement.says.names]
    topics = [word for word in words if meaning(word.casefold()).topics & statement.says.topics]
    return next(iter([*named, *topics]), statement.who).removesuffix("'s")


def _seen(notes: Sequence[Note], start: Seq) -> Iterable[Fact]:
    for note in condense_notes(notes):
        yield Fact(
            turns=(start,),
            kind=FactKind.DOING,
            speaker=plain(note.who),
            at=note.at,
            text=as_sentence(f"On {plain(note.who)}'s screen: {plain(note.what)}", MAX_FACT_CHARS),
            note_id=note.id,
            subject=plain(note.who),
        )


def _in_order(facts: Sequence[Fact], room: int) -> str:
    """Return the weightiest facts that fit, in their order."""
    places: list[int] = []
    for place in sorted(range(len(facts)), key=lambda each: (-_density(facts[each]), each)):
        length = len(facts[place].attributed_text) + 1
        if length <= room:
            places.append(place)
            room -= length
    return " ".join(facts[place].attributed_text for place in sorted(places))


def _density(fact: Fact) -> float:
    says = meaning(fact.text)
    return fact.importance * says.weight * density(says, fact.text)
