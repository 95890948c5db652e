"""Selects the search hits that are quoted in the prompt of a reply, and writes the quotes. Pure.

Only a few hits are quoted, all in one part. They must be about the question (`quote_search`), must not repeat what the
prompt already contains (the recent turns, or the summary in the same words), and must not be replaced by newer words
about the same thing (`statements`). A question is quoted with its answer. A quote says which of its words are whose.
Quotes are made for one reply and are not stored as turns, so recalled text is never folded again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from itertools import chain, groupby, pairwise
from operator import attrgetter
from typing import TYPE_CHECKING, TypeAlias

from compaction.clock_time import format_clock_time
from compaction.language.statements import Statement
from compaction.language.terms import normalized_words, terms
from compaction.language.text import cut_at_word, plain, sentences
from compaction.memory.passage import PassageKind
from compaction.memory.recall import LEAST_LIKENESS, RecallHit, SearchQuery, TurnRef
from compaction.model import SAID, Seq, SessionId, Turn, TurnPart
from compaction.payload import PartKind, PayloadPart, data_part
from compaction.speaker_names import plain_name
from compaction.tokens import estimate_text_tokens
from compaction.untrusted_text import inline

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


HEAD = (
    "Found in memory by its words, oldest first. It may be beside the point, or out of date: what the conversation "
    "says later counts."
)
# A hit below this is about something else. Of 147 questions about other evenings than those of `roomtone bench memory`,
# 96.6 % have their answer among the quotes; at 0.34 it is 93.2 %.
LEAST_RELEVANCE = 0.25
# A hit that covers less than this share of what the best one covers is quoted only if it is later about the same as one
# that covers more.
LEAST_OF_BEST = 0.5
MAX_QUOTE_CHARS = 400
# Hits of so few turns apart belong to one scene. It is quoted together, with what was said between them and just beside
# them, in as much room as its hits would have alone.
SCENE_TURNS = 4
# Stands for sentences that are left out of a quote.
_GAP = "…"
# A text that the prompt has, with its speaker's name: its words, and these in their order.
_Seen: TypeAlias = tuple[frozenset[str], str]
_place = attrgetter("session_id", "seq")
_REF = re.compile(r"(?P<kind>turn|note):(?P<session>.+)#(?P<key>[^#]+)$")


@dataclass(frozen=True, slots=True)
class Citation:
    """The source of a quote. `key`: the seq of the turn, or the id of the note."""

    kind: PassageKind
    session_id: SessionId
    key: str

    @property
    def ref(self) -> str:
        """Return the reference for log lines. It contains no words of the conversation."""
        return f"{self.kind.value}:{self.session_id}#{self.key}"


def parse_citation(ref: str) -> Citation | None:
    """Parse a `Citation.ref`. Returns None for any other text."""
    found = _REF.match(ref)
    return found and Citation(PassageKind(found["kind"]), SessionId(found["session"]), found["key"])


@dataclass(frozen=True, slots=True)
class Quote:
    """One quote in a prompt, and the search hit it comes from. `said`: the quoted words of each speaker. `line`: the
    quote as it is sent, with a line for each speaker. `refs`: its sources.
    """

    recalled: RecallHit
    said: tuple[TurnPart, ...]
    line: str
    refs: tuple[str, ...]

    @property
    def text(self) -> str:
        """Return the quoted words, a line for each speaker."""
        return "\n".join(part.text for part in self.said)

    @property
    def tokens(self) -> int:
        return estimate_text_tokens(self.line)


def quotes_part(quotes: Sequence[Quote]) -> tuple[PayloadPart, ...]:
    """Return the one part of a prompt that has these quotes, oldest first, or nothing without any.

    The part has no seqs, because a quote does not stand for turns of the current window.
    """
    if not quotes:
        return ()
    text = "\n".join((HEAD, *(quote.line for quote in quotes)))
    refs = tuple(ref for quote in quotes for ref in quote.refs)
    return (data_part(PartKind.RECALL, text, timestamp=quotes[0].recalled.at, refs=refs),)


def select_quotes(
    found: Sequence[RecallHit],
    *,
    asked: SearchQuery,
    session_id: SessionId,
    asked_at: float,
    window: Sequence[Turn] = (),
    in_view: Sequence[tuple[str, str]] = (),
    most: int,
    max_tokens: int,
    zone: tzinfo,
) -> tuple[Quote, ...]:
    """Return the quotes to send, oldest first: at most `most` quotes, twice as many for a question in several clauses,
    with at most `max_tokens` tokens in total.

    `found`: search hits, best first. `session_id`: the current session; quotes from other sessions include a date.
    `asked_at`: UTC epoch seconds. `window`: the turns that the prompt contains anyway, `in_view`: its other texts with
    their speakers (summary sentences, notes). Only people's words and screen notes are quoted, not the bot's own words
    or gists.
    """
    wanted = frozenset(asked.terms)
    # People ask about what happened in several clauses, and the answer is seldom in one place.
    most *= 2 if len(asked.clauses) > 1 else 1
    # The bot's own turns don't count: text that the bot quoted from somebody may be quoted again.
    people = {TurnRef(session_id, turn.seq): turn for turn in window if turn.kind in SAID}
    seen = [
        *(_seen(part.speaker, part.text) for turn in people.values() for part in turn.parts),
        *(_seen(speaker, text) for speaker, text in in_view),
    ]
    about = [each for each in found if _is_about(each, asked_at)]
    least = LEAST_OF_BEST * max((each.relevance for each in about), default=0.0)
    candidates = _candidates(about, wanted, asked_at, least=least)
    best = [each for each in candidates if each.hit.relevance >= least]
    # A question that none of the best hits is like is about nothing that was said.
    if max((each.hit.likeness for each in best if each.hit.likeness is not None), default=1.0) < LEAST_LIKENESS:
        return ()
    later = [each for listed in (_statements(people) if candidates else {}).values() for each in listed]
    matters: dict[_Candidate, _Matter] = {}
    for each in sorted(candidates, key=lambda one: one.hit.at, reverse=True):
        matters[each] = _Matter.of(each, matters, later, wanted)
    quotes: dict[_Candidate, Quote] = {}
    without_room: set[_Candidate] = set()
    tokens = 0
    # What was said later about the same comes first, since it may hold instead. Without it the earlier is not quoted.
    for each in dict.fromkeys(one for hit in best for one in (*matters[hit].newer, hit)):
        chosen = _chosen_sentences(each, wanted, seen, matters[each].outdated)
        if chosen is None:
            continue
        said = quoted_parts(each.parts, chosen)
        quote = make_quote(each.hit, said, session_id=session_id, zone=zone, beside=each.beside)
        has_room = len(quotes) < most and tokens + quote.tokens <= max_tokens
        if has_room and without_room.isdisjoint(matters[each].newer):
            tokens += quote.tokens
            seen += [_seen(part.speaker, part.text) for part in said]
            quotes[each] = quote
        else:
            without_room.add(each)
    return tuple(sorted(quotes.values(), key=lambda quote: quote.recalled.at))


@dataclass(frozen=True, slots=True, eq=False)
class _Candidate:
    """What may be quoted: a hit, or the best one of a scene. `parts`: its words, with those of the turns `beside` it
    that belong to it. `statements`: their sentences. `hits`: how many hits it stands for.
    """

    hit: RecallHit
    parts: tuple[TurnPart, ...]
    statements: tuple[Statement, ...]
    beside: tuple[Turn, ...] = ()
    hits: int = 1


def _candidates(
    about: Sequence[RecallHit], asked: frozenset[str], asked_at: float, *, least: float
) -> list[_Candidate]:
    """Return the hits that are about the question, best first, each with the turns that belong to it. `least`: the
    relevance of a hit that makes a scene.
    """
    turns = {
        TurnRef(hit.session_id, turn.seq): turn
        for hit in about
        for turn in hit.around
        if turn.kind in SAID and turn.started_at < asked_at
    }
    stated = _statements(turns)
    hits = sorted(
        (
            TurnRef(hit.session_id, hit.seq)
            for hit in about
            # What is only like the question makes no scene.
            if hit.seq is not None and hit.relevance >= least and hit.relevance > (hit.likeness or 0.0)
        ),
        key=_place,
    )
    candidates: list[_Candidate] = []
    taken: set[TurnRef] = set()
    for hit in about:
        ref = None if hit.seq is None else TurnRef(hit.session_id, hit.seq)
        if ref in taken:
            continue
        scene = _scene(ref, hits) if ref in hits else []
        belonging = scene or (_thread(ref, stated, asked) if ref in stated else ())
        thread = [each for each in belonging if each in stated and each not in taken]
        taken.update(thread)
        candidates.append(
            _Candidate(
                hit,
                tuple(part for each in thread for part in turns[each].parts) or hit.parts,
                tuple(one for each in thread for one in stated[each]) or _statements_of(hit.at, hit.parts),
                tuple(turns[each] for each in thread if each != ref),
                max(1, len(frozenset(hits).intersection(thread))),
            )
        )
    return candidates


def _is_about(hit: RecallHit, asked_at: float) -> bool:
    is_said = hit.kind is PassageKind.NOTE or (hit.kind is PassageKind.TURN and hit.turn_kind in SAID)
    return is_said and hit.relevance >= LEAST_RELEVANCE and hit.at < asked_at


def _scene(ref: TurnRef, hits: Sequence[TurnRef]) -> list[TurnRef]:
    """Return the turns of the scene of a hit, from just before its first hit to the last ones that a hit brings; none
    if no other of the `hits`, which are in order, is near.
    """
    ends = [
        at
        for at, (one, other) in enumerate(pairwise(hits), 1)
        if one.session_id != other.session_id or other.seq - one.seq > SCENE_TURNS
    ]
    scene = next(part for first, end in pairwise((0, *ends, len(hits))) if ref in (part := hits[first:end]))
    steps = range(-1, scene[-1].seq - scene[0].seq + SCENE_TURNS) if len(scene) > 1 else ()
    return [_beside(scene[0], step) for step in steps]


def _statements(turns: Mapping[TurnRef, Turn]) -> dict[TurnRef, tuple[Statement, ...]]:
    """Return the sentences of each turn."""
    stated: dict[TurnRef, tuple[Statement, ...]] = {}
    for ref in sorted(turns, key=_place):
        before = stated.get(_beside(ref, -1), ())
        stated[ref] = _statements_of(turns[ref].started_at, turns[ref].parts, before)
    return stated


def _statements_of(at: float, parts: Sequence[TurnPart], before: Sequence[Statement] = ()) -> tuple[Statement, ...]:
    stated = list(before[-1:])
    for part, sentence in _sentences(parts):
        stated.append(Statement.of(at, part.speaker, sentence, stated[-1] if stated else None))
    return tuple(stated[len(before[-1:]) :])


def _beside(ref: TurnRef, step: int) -> TurnRef:
    return TurnRef(ref.session_id, Seq(ref.seq + step))


def _thread(ref: TurnRef, stated: Mapping[TurnRef, Sequence[Statement]], asked: frozenset[str]) -> list[TurnRef]:
    """Return a turn with those that it tells nothing without: the reply to it, and what it replies to, as far as that
    has more of what is `asked`.
    """
    thread = [ref]
    while (
        (after := stated.get(_beside(thread[-1], 1), ()))
        and after[0].replies
        and (after[-1].asks or after[0].words - asked)
    ):
        thread.append(_beside(thread[-1], 1))
        if not after[-1].asks:
            break
    known = {term for each in thread for one in stated[each] for term in one.words | one.names}
    while stated[thread[0]] and stated[thread[0]][0].replies and asked & stated[thread[0]][0].led_by - known:
        thread.insert(0, _beside(thread[0], -1))
        known |= {term for one in stated[thread[0]] for term in one.words | one.names}
    return thread


@dataclass(frozen=True, slots=True)
class _Matter:
    """What was said later about the same as a candidate. `newer`: candidates, and what is newer than these, newest
    first. `outdated`: the numbers of the candidate's sentences that hold no longer.
    """

    newer: tuple[_Candidate, ...]
    outdated: frozenset[int]

    @classmethod
    def of(
        cls, each: _Candidate, later: Mapping[_Candidate, _Matter], window: Sequence[Statement], query: frozenset[str]
    ) -> _Matter:
        """`later`: the candidates that were said later, with theirs. `window`: what the prompt has anyway."""
        newer: set[_Candidate] = set()
        outdated: set[int] = set()
        by = each.hit.superseded_by
        if by is not None:
            # As the fold of a model found out. The correction is about some sentences, or it has no word of theirs.
            newer |= {one for one in later if (one.hit.session_id, one.hit.seq) == (by.session_id, by.seq)}
            about = {term for one in newer for statement in one.statements for term in statement.words}
            outdated = {at for at, old in enumerate(each.statements) if not about.isdisjoint(old.words)} or {
                *range(len(each.statements))
            }
        for at, old in enumerate(each.statements):
            following = {one: [new for new in one.statements if new.follows(old, query)] for one in later}
            newer |= {one for one, found in following.items() if found}
            told = [*chain.from_iterable(following.values()), *(new for new in window if new.follows(old, query))]
            outdated |= {at} if any(new.replaces(old, query) for new in told) else set()
        if outdated and outdated.issuperset(at for at, old in enumerate(each.statements) if not old.asks):
            # A question without its answer tells nothing.
            outdated = set(range(len(each.statements)))
        newer |= {latest for one in newer for latest in later[one].newer}
        return cls(tuple(sorted(newer, key=lambda one: -one.hit.at)), frozenset(outdated))


def _sentences(parts: Sequence[TurnPart]) -> list[tuple[TurnPart, str]]:
    return [(part, sentence) for part in parts for sentence in sentences(part.text)]


def _chosen_sentences(
    each: _Candidate, asked: frozenset[str], seen: Sequence[_Seen], outdated: frozenset[int]
) -> tuple[int, ...] | None:
    """Return the numbers of the candidate's sentences to quote: those that hold and that the prompt does not contain
    yet. Empty means all.

    Returns None if no sentence is new, or if none of the new sentences is about the question although others are.
    """
    said = _sentences(each.parts)
    shared = [len(asked.intersection(terms(text))) for _, text in said]
    new: list[int] = []
    for place, (who, text) in enumerate(said):
        if terms(text):
            is_new = not _is_in_view(who.speaker, text, seen)
        else:
            # 'Or not.' has no word to find it by: it goes with what the same person says before it, and with a scene.
            is_new = place - 1 in new and (each.hits > 1 or said[place - 1][0] is who)
        if is_new and place not in outdated:
            new.append(place)
    if not new or (any(shared) and not any(shared[place] for place in new)):
        return None
    fitting = _fitting(new, [text for _, text in said], shared, room=MAX_QUOTE_CHARS * each.hits)
    return () if len(fitting) == len(said) else fitting


def _fitting(new: Sequence[int], said: Sequence[str], shared: Sequence[int], *, room: int) -> tuple[int, ...]:
    """Return which of the new sentences fit into a quote: first those with most words of the question, then what
    follows the best of them. At least one, which is cut if it is too long.
    """
    best = max(new, key=lambda place: (shared[place], -place))
    chosen: list[int] = []
    for place in sorted(new, key=lambda place: (-shared[place], place < best, place)):
        if len(said[place]) <= room:
            room -= len(said[place]) + len(f" {_GAP} ")
            chosen.append(place)
    return tuple(sorted(chosen)) or (best,)


def quoted_parts(parts: Sequence[TurnPart], chosen: Sequence[int]) -> tuple[TurnPart, ...]:
    """Return the quoted words of each speaker, who may have none. `chosen`: the numbers of the quoted sentences,
    counted through all parts; empty means all sentences.
    """
    if not chosen:
        return tuple(replace(part, text=_quoted(inline(plain(part.text)))) for part in parts if plain(part.text))
    quoted: list[TurnPart] = []
    first = 0
    for part in parts:
        said = sentences(part.text)
        own = [place - first for place in chosen if first <= place < first + len(said)]
        if own:
            kept = [sentence if place in own else _GAP for place, sentence in enumerate(said)]
            text = " ".join(word for word, _ in groupby(kept))
            quoted.append(replace(part, text=_quoted(inline(text))))
        first += len(said)
    return tuple(quoted)


def _quoted(text: str) -> str:
    return cut_at_word(text, MAX_QUOTE_CHARS, mark="… [cut]")


def _seen(speaker: str, text: str) -> _Seen:
    found = normalized_words(f"{speaker} {text}")
    return frozenset(found), _run_of(found)


def _is_in_view(speaker: str, sentence: str, seen: Sequence[_Seen]) -> bool:
    """Return whether one text of the prompt has a sentence's words in one piece, and its speaker's name.

    A text that lacks one word may be about another person or name another value, and one word more may be 'not'.
    """
    who, wanted = frozenset(normalized_words(speaker)), _run_of(normalized_words(sentence))
    return any(wanted in run and who <= spoken for spoken, run in seen)


def _run_of(found: Sequence[str]) -> str:
    return f" {' '.join(found)} "


def make_quote(
    hit: RecallHit,
    said: tuple[TurnPart, ...],
    *,
    session_id: SessionId,
    zone: tzinfo,
    beside: Sequence[Turn] = (),
) -> Quote:
    """Return a quote of a search hit, with a line for each speaker. `said`: the words to quote (`quoted_parts`), those
    of the turns `beside` it among them. `session_id`: the current session.
    """
    screen = hit.kind is PassageKind.NOTE
    cited = Citation(hit.kind, hit.session_id, str(hit.note_id if screen else hit.seq))
    here = cited.session_id == session_id
    day = datetime.fromtimestamp(hit.at, zone)
    when = f"{'' if here else f'{day.day} {day:%B}, '}{format_clock_time(hit.at, zone)}"
    where = f", turn {cited.key}" if here and cited.kind is PassageKind.TURN else ""
    lines = [
        f"on {plain_name(part.speaker)}'s screen: {part.text}" if screen else f"{plain_name(part.speaker)}: {part.text}"
        for part in said
    ]
    also = (replace(cited, key=str(turn.seq)).ref for turn in beside)
    return Quote(hit, said, "\n".join((f"[{when}] From memory{where}, {lines[0]}", *lines[1:])), (cited.ref, *also))
