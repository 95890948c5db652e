"""The chapters of an evening: stretches of 20 to 120 turns about one thing, and how much of each is told. Pure.

A chapter is made of segments and has nothing of its own, so what is forgotten or withheld in these is in no chapter.
Segments in a row with one heading are one chapter (`Segment.heading`), within these bounds: a fold says whether it goes
on or begins another.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from compaction.language.terms import terms
from compaction.language.text import cut_at_word, plain, sentences, words
from compaction.memory.passage import NEIGHBOUR_SHARE
from compaction.memory.recall import choose_terms, parse_query
from compaction.sentence_cache import sentence_cache
from compaction.summary.extractive import make_heading, tells_of_people
from compaction.summary.folded import closed_refs, known_facts_of
from compaction.summary.port import NOTHING_KEPT
from compaction.tokens import estimate_text_tokens
from compaction.untrusted_text import inline

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from compaction.model import Segment, Seq

# A shorter one goes on, whatever its next turns are called; a longer one ends, though its subject does not.
LEAST_TURNS = 20
MOST_TURNS = 120
# A game may be silent for minutes; after so long people have done something else.
PAUSE_S = 900.0
# What all chapters of a prompt may take, and those of a fold's request.
PROMPT_TOKENS = 1_200
REQUEST_TOKENS = 800
# What the sentences may take that tell of what is asked. A fact is a fifth as long as the turns that it was made of.
ASKED_TOKENS = 1_500
# Some sentence must have this share of what is asked; of the others each has this share of what that one has. Half of
# the turns that show an answer are told by sentences far down: people ask in words of their own.
_LEAST_ASKED = 0.25
_LEAST_OF_BEST = 0.1
# About 300 tokens.
_MOST_CHARS = 1_200


@dataclass(frozen=True, slots=True)
class Chapter:
    """A stretch of turns `start <= seq < end` about one thing. Times are UTC epoch seconds.

    `headings`: at least one, mostly one. `sentences`: the facts that hold, in the order of talk, or without any what
    happened, with the `importance` of each. Nothing is of a screen, or of a fold that was told something in confidence.
    """

    start: Seq
    end: Seq
    started_at: float
    ended_at: float
    headings: tuple[str, ...]
    sentences: tuple[str, ...]
    importance: tuple[int, ...]

    @property
    def heading(self) -> str:
        """Return what it is called."""
        return "; ".join(self.headings)

    def ranked(self, known: Sequence[frozenset[str]]) -> list[int]:
        """Return the places of its sentences, those first that matter most and of which least is `known`: the words of
        sentences told elsewhere.
        """
        own = [_words_of(each) for each in self.sentences]
        new = [min((len(each - one) / max(1, len(each)) for one in known), default=1) for each in own]
        return sorted(range(len(new)), key=lambda at: -self.importance[at] * new[at])

    def told(self, sentences: Sequence[str]) -> str:
        """Return its heading and some of its sentences."""
        # A heading that no model wrote is the beginning of a fact.
        headings = (
            each for each in self.headings if not any(one.startswith(each.removesuffix('…"')) for one in sentences)
        )
        return plain(": ".join(filter(None, ("; ".join(headings), " ".join(sentences)))))

    @property
    def whole(self) -> str:
        """Return all of it, as far as anybody would read."""
        return cut_at_word(self.told(self.sentences), _MOST_CHARS)


def chapters_of(segments: Sequence[Segment]) -> tuple[Chapter, ...]:
    """Return the chapters of a session, oldest first, without those of which nothing may be told.

    `segments`: those that may be told, in order. What the end of a session quotes is in none.
    """
    runs: list[list[Segment]] = []
    for each in segments:
        if each.closing:
            continue
        if runs and _belongs(each, runs[-1]):
            runs[-1].append(each)
        else:
            runs.append([each])
    closed = closed_refs(segments)
    before = ("", *(run[-1].heading for run in runs))
    made = map(partial(_chapter, closed), runs, before)
    return tuple(each for each in made if each.heading)


def _belongs(each: Segment, run: Sequence[Segment]) -> bool:
    first, last = run[0], run[-1]
    if each.start == each.end:
        # It was made of notes alone.
        return True
    if each.start != last.end or each.started_at - last.ended_at > PAUSE_S or each.end - first.start > MOST_TURNS:
        return False
    return last.end - first.start < LEAST_TURNS or each.heading.casefold() == last.heading.casefold()


def _chapter(closed: Collection[str], run: Sequence[Segment], before: str) -> Chapter:
    """`closed`: the refs of facts that are over. `before`: the heading that the last chapter ended with. If no model
    wrote it, it is a quote of that chapter, and says nothing of this one.
    """
    told = [each for each in run if not each.is_confided]
    known = (each for segment in told for each in known_facts_of(segment))
    facts = [each.fact for each in known if each.ref not in closed and each.fact.note_id is None]
    gists = [each.gist for each in told if each.gist not in {"", NOTHING_KEPT} and not tells_of_people(each.facts)]
    headings = [each.heading for each in told if each.is_by_model or each.heading != before]
    sentences = {fact.text: int(fact.importance) for fact in facts} or dict.fromkeys(gists, 1)
    return Chapter(
        run[0].start,
        max(each.end for each in run),
        min(each.started_at for each in run),
        max(each.ended_at for each in run),
        tuple(dict.fromkeys(filter(None, headings))) or (make_heading(facts, "".join(gists[:1])),),
        tuple(sentences),
        tuple(sentences.values()),
    )


def tell_chapters(
    chapters: Sequence[Chapter], *, max_tokens: int, beside: str = "", lead: Callable[[Chapter], str] = lambda _: ""
) -> tuple[tuple[Chapter, str], ...]:
    """Return these chapters with a line for each, oldest first, in at most `max_tokens` together.

    A line begins with the `lead` of its chapter. Each has its heading, and by turns one more of its sentences, the last
    chapters first, until there is no room. What stands in `beside` is not told, and what has its words comes last.
    Without room for all headings those go first that are worth least.
    """
    bare = {each: _tokens(f"{lead(each)}{each.heading}: ") for each in chapters}
    left = max_tokens - sum(bare.values())
    kept = list(chapters)
    for chapter in sorted(chapters, key=lambda each: (sum(each.importance), each.start)):
        if left < 0:
            kept.remove(chapter)
            left += bare[chapter]
    known = [_words_of(each) for each in sentences(beside)]
    by_turns = sorted(
        (rank, -place, at)
        for place, chapter in enumerate(kept)
        for rank, at in enumerate(chapter.ranked(known))
        if chapter.sentences[at] not in beside
    )
    chosen: list[list[int]] = [[] for _ in kept]
    for _, place, at in by_turns:
        chapter, sentence = kept[-place], kept[-place].sentences[at]
        left -= _tokens(sentence)
        if left < 0:
            break
        chosen[-place].append(at)
    return tuple(
        (each, lead(each) + inline(each.told([each.sentences[at] for at in sorted(places)])))
        for each, places in zip(kept, chosen, strict=True)
    )


@sentence_cache(most=2_048)
def _words_of(sentence: str) -> frozenset[str]:
    """Return the words of a sentence. Each prompt ranks those of all chapters again."""
    return frozenset(words(sentence))


def sentences_about(
    chapters: Sequence[Chapter], question: str, *, max_tokens: int, beside: str = "", whole: bool = False
) -> tuple[tuple[Chapter, str], ...]:
    """Return the sentences that tell of what is asked, with their chapters, in the order of talk. What stands in
    `beside` is not told again. `whole`: the others too, as far as there is room.

    A sentence counts for its own terms, and in part for those of the sentences before and after it.
    """
    told = [(chapter, sentence) for chapter in chapters for sentence in chapter.sentences]
    own = [_terms_of(sentence) for _, sentence in told]
    query = parse_query(question)
    asked = choose_terms(query, Counter(term for each in own for term in each.intersection(query.terms)), len(told))
    weights = [
        asked.weight_in(each)
        + NEIGHBOUR_SHARE * max(asked.weight_in(near - each) for near in own[max(0, at - 1) : at + 2])
        for at, each in enumerate(own)
    ]
    best = max(weights, default=0.0)
    if not whole and (not best or best < _LEAST_ASKED * asked.asked):
        return ()
    least = 0.0 if whole else _LEAST_OF_BEST * best
    chosen: list[int] = []
    telling = (at for at, weight in enumerate(weights) if weight >= least and told[at][1] not in beside)
    for at in sorted(telling, key=lambda place: (-weights[place], -place)):
        max_tokens -= _tokens(told[at][1])
        if max_tokens < 0:
            break
        chosen.append(at)
    return tuple(told[at] for at in sorted(chosen))


@sentence_cache(most=2_048)
def _terms_of(sentence: str) -> frozenset[str]:
    return frozenset(terms(sentence))


def _tokens(text: str) -> int:
    """Return what a piece of a line takes at most, with the space or line feed behind it."""
    return 1 + estimate_text_tokens(inline(text))


def without_headings(segments: Sequence[Segment], before: Sequence[Segment], lost: Sequence[bool]) -> list[Segment]:
    """Return segments whose headings tell nothing that is lost; segments of one chapter stay together.

    `before`: the same as they were. `lost`: whether the heading of each may tell of it. A heading that a segment shares
    with the one before is the words of that.
    """
    made: list[Segment] = []
    # The last segment that a fold could go on with, and whether its heading is lost.
    last, was_lost = -1, False
    for at, each in enumerate(segments):
        shared = last >= 0 and bool(each.heading) and before[last].heading == before[at].heading
        is_lost = lost[at] or (was_lost and shared)
        heading = (made[last].heading if shared else "") or make_heading(each.facts, each.gist)
        made.append(replace(each, heading=heading) if is_lost else each)
        if not each.closing:
            last, was_lost = at, is_lost
    return made
