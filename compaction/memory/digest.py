"""A digest of a session, or of a stretch of it, for people: what it was about, decisions, open questions, people.

It is made of what folding has stored: the gists of chapters and segments, and the facts that hold. Turns that no usable
segment covers are folded for the digest alone. What somebody told in confidence is in no digest, nor what people state
about themselves (`FactKind.LASTING`): who reads a digest may not have been meant to hear it. Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from compaction.language.meaning import meaning
from compaction.language.text import cut_at_word, sentences
from compaction.model import FactKind, Seq, TurnKind
from compaction.summary.extractive import empty_gist, extract_facts, make_gist
from compaction.summary.port import REACH_TURNS, Fold, FoldRequest, KnownFact, known_facts_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from compaction.model import Chapter, Fact, Segment, Turn
    from compaction.summary.ledger import SegmentLedger

# What fits into one message of Discord, and is read in half a minute.
MOST_ABOUT = 8
MOST_FACTS = 8
# As many turns as one fold has: a model is asked only if more of the newest ones are not folded.
STALE_TURNS = 10
# So many of the newest turns go to a model at once; older ones that are not folded are extracted.
MOST_FOLDED_AT_ONCE = 80
_EXTRACTED_AT_ONCE = 30
# Without a model, a stretch is told by so many quotes of these kinds: decisions and questions have their own place.
_QUOTED = 2
_IN_GISTS = frozenset({FactKind.DOING, FactKind.OTHER})
# So many earlier facts may be replaced or answered by a batch.
_KNOWN = 120
# So many of the last turns are quoted, and so much of each.
_LAST = 3
_LAST_CHARS = 200
# How long before and after 'don't tell anyone' its speaker may have said what they mean.
_CONFIDED_WITHIN_S = 30.0
# The confidences that people ask for in these words. A missed one is quoted, so it errs on the side of too many.
_CONFIDED = re.compile(
    r"\b(?:do not|don'?t|never) (?:you )?(?:dare )?(?:tell|repeat|mention|pass)\b|\btell no ?(?:one|body)\b"
    r"|\bbetween (?:you and me|us|ourselves)\b|\b(?:in|strictly) confiden(?:ce|tial)\b|\boff the record\b"
    r"|\bkeep (?:it|this|that) (?:to yourself|between|secret|quiet|private)\b|\b(?:my|our|a) secret\b"
    r"|\bim vertrauen\b|\bunter uns\b|\b(?:nicht|nie) (?:weiter|herum)(?:sagen|erzählen)\b|\bvertraulich\b"
    r"|\b(?:sag|sagt|erzähl|erzählt)\b[^.!?]{0,30}\b(?:niemand(?:em)?|keinem|nicht weiter)\b|\bgeheimnis\b"
    r"|\bbehalt(?:e|et)?\b[^.!?]{0,20}\bfür (?:dich|euch)\b|\bbleibt unter\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class DigestLine:
    """One line of a digest. `at`: UTC epoch seconds. `speaker`: whose words `text` has; empty if it has its own."""

    at: float
    text: str
    speaker: str = ""


@dataclass(frozen=True, slots=True)
class Digest:
    """What people read of a session or a stretch of it. Times are UTC epoch seconds. `turn_count`: how often people
    spoke. `people`: their names, in the order in which they first appeared. `last`: the last words, for who comes back.
    """

    started_at: float
    ended_at: float
    turn_count: int
    people: tuple[str, ...] = ()
    about: tuple[DigestLine, ...] = ()
    decisions: tuple[DigestLine, ...] = ()
    open: tuple[DigestLine, ...] = ()
    last: tuple[DigestLine, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Return whether nobody said anything that may be told."""
        return not self.turn_count


@dataclass(frozen=True, slots=True)
class DigestParts:
    """What a digest is made of. `turns`: all turns of the stretch; those that may not be told are tombstones.

    `chapters`, `segments`: those that are used, in order. `loose`: runs of turns that no used segment covers. `ended`:
    the refs of facts that later ones replaced or closed.
    """

    turns: tuple[Turn, ...]
    chapters: tuple[Chapter, ...]
    segments: tuple[Segment, ...]
    loose: tuple[tuple[Turn, ...], ...]
    ended: frozenset[str]

    @property
    def stale(self) -> tuple[Turn, ...]:
        """Return the newest turns if so many of them are not folded that a model is worth asking, else none."""
        if not self.loose or self.loose[-1][-1].seq < self.turns[-1].seq:
            return ()
        newest = self.loose[-1][-MOST_FOLDED_AT_ONCE:]
        return newest if sum(_is_said(turn) for turn in newest) >= STALE_TURNS else ()


def confided(turns: Iterable[Turn]) -> frozenset[Seq]:
    """Return the turns in which somebody tells something in confidence: says so, or says so just before or after."""
    said = [turn for turn in turns if turn.kind is TurnKind.SPEECH]
    found: set[Seq] = set()
    for place, turn in enumerate(said):
        marking = {part.speaker_id for part in turn.parts if _CONFIDED.search(part.text)}
        if not marking:
            continue
        found.add(turn.seq)
        for other in said[max(0, place - REACH_TURNS) : place + REACH_TURNS]:
            apart = max(turn.started_at - other.ended_at, other.started_at - turn.ended_at)
            if apart <= _CONFIDED_WITHIN_S and any(part.speaker_id in marking for part in other.parts):
                found.add(other.seq)
    return frozenset(found)


def digest_parts(turns: Sequence[Turn], ledger: SegmentLedger) -> DigestParts:
    """Return what the digest of these turns is made of. `turns`: a stretch without a gap; withheld ones are tombstones.

    `ledger`: without what may hold withheld words.
    """
    hidden = confided(turns)
    told = tuple(replace(turn, parts=(), tombstone=True) if turn.seq in hidden else turn for turn in turns)
    if not told:
        return DigestParts((), (), (), (), frozenset())
    first, end = told[0].seq, told[-1].seq + 1

    def is_whole(start: Seq, stop: Seq) -> bool:
        return first <= start < stop <= end and not any(start <= seq < stop for seq in hidden)

    segments = tuple(each for each in ledger.segments if is_whole(each.start, each.end) and not each.is_recursive)
    chapters = tuple(each for each in ledger.top_chapters if is_whole(each.start, each.end))
    covered = {seq for each in segments for seq in range(each.start, each.end)}
    ended = frozenset(ref for each in ledger.segments for fact in each.facts for ref in fact.supersedes)
    return DigestParts(told, chapters, segments, tuple(_runs(told, covered)), ended)


def _runs(turns: Sequence[Turn], covered: Collection[int]) -> Iterable[tuple[Turn, ...]]:
    """Yield the runs of turns that are not covered and of which anything may be told."""
    run: list[Turn] = []
    for turn in turns:
        if turn.seq not in covered:
            run.append(turn)
            continue
        if any(map(_is_said, run)):
            yield tuple(run)
        run = []
    if any(map(_is_said, run)):
        yield tuple(run)


def request_for_digest(parts: DigestParts) -> FoldRequest:
    """Return the request to fold the stale turns. Call it only if there are some."""
    stale = parts.stale
    before = tuple(turn for turn in parts.turns if stale[0].seq - REACH_TURNS <= turn.seq < stale[0].seq)
    return FoldRequest(
        start=stale[0].seq,
        turns=stale,
        notes=(),
        previous=None,
        # Without labels: the prompt names the facts that it shows.
        known=tuple(KnownFact(each.ref, each.fact) for each in _known(parts) if each.ref not in parts.ended),
        before=before,
        roster=frozenset(part.speaker for turn in parts.turns for part in turn.parts),
        # A digest is made of gist and facts, and somebody waits for it.
        wants_paragraph=False,
    )


def make_digest(parts: DigestParts, fold: Fold | None = None) -> Digest:
    """Return the digest. `fold`: what a model made of the stale turns; None: they are extracted.

    Extracting takes about a millisecond for each turn that is not folded.
    """
    by_model = parts.stale if fold is not None else ()
    known = _known(parts)
    about = [DigestLine(each.started_at, gist) for each in parts.chapters if (gist := _untold(each.gist))]
    in_chapters = {seq for each in parts.chapters for seq in range(each.start, each.end)}
    own = (each for each in parts.segments if each.start not in in_chapters)
    about += (DigestLine(each.started_at, gist) for each in own if (gist := _segment_gist(each, parts.turns)))
    modelled = {turn.seq for turn in by_model}
    for run in parts.loose:
        extracted = [turn for turn in run if turn.seq not in modelled]
        for start in range(0, len(extracted), _EXTRACTED_AT_ONCE):
            batch = extracted[start : start + _EXTRACTED_AT_ONCE]
            if not any(map(_is_said, batch)):
                continue
            facts = extract_facts(batch, start=batch[0].seq, known=known[-_KNOWN:])
            known += _numbered(batch[0].seq, facts)
            if gist := _gist_of(facts, batch):
                about.append(DigestLine(batch[0].started_at, gist))
    if fold is not None and by_model:
        known += _numbered(by_model[0].seq, fold.facts)
        if gist := _untold(fold.gist) or _gist_of(fold.facts, by_model):
            about.append(DigestLine(by_model[0].started_at, gist))
    said = [turn for turn in parts.turns if _is_said(turn)]
    standing = _standing(known, parts)
    return Digest(
        started_at=parts.turns[0].started_at if parts.turns else 0.0,
        ended_at=parts.turns[-1].ended_at if parts.turns else 0.0,
        turn_count=len(said),
        people=_people(parts.turns),
        about=_spread(sorted(about, key=lambda line: line.at), MOST_ABOUT) if said else (),
        decisions=_lines(standing, FactKind.DECISION),
        open=_lines(standing, FactKind.OPEN),
        last=tuple(
            DigestLine(turn.started_at, cut_at_word(part.text, _LAST_CHARS), part.speaker)
            for turn in said[-_LAST:]
            for part in turn.parts
        ),
    )


def _is_said(turn: Turn) -> bool:
    return turn.kind is TurnKind.SPEECH and bool(turn.parts)


def _known(parts: DigestParts) -> list[KnownFact]:
    return [each for segment in parts.segments for each in known_facts_of(segment)]


def _numbered(start: Seq, facts: Iterable[Fact]) -> list[KnownFact]:
    """Return facts of the digest alone, with refs that no stored fact has."""
    return [KnownFact(f"digest:{start}#{number}", fact) for number, fact in enumerate(facts)]


def _standing(known: Sequence[KnownFact], parts: DigestParts) -> list[Fact]:
    """Return the facts that hold and that people said, in the order of talk."""
    ended = parts.ended | {ref for each in known for ref in each.fact.supersedes}
    said = {turn.seq for turn in parts.turns if _is_said(turn)}
    facts = [each.fact for each in known if each.ref not in ended]
    told = [fact for fact in facts if fact.note_id is None and fact.turn_seq in said]
    return sorted(told, key=lambda fact: (fact.at, fact.turn_seq))


def _lines(standing: Sequence[Fact], kind: FactKind) -> tuple[DigestLine, ...]:
    """Return the most important facts of a kind, in the order of talk."""
    found = [fact for fact in standing if fact.kind is kind]
    # Of equally important ones the later: what was settled or asked last matters to who reads on.
    best = sorted(range(len(found)), key=lambda place: (-found[place].importance, -place))[:MOST_FACTS]
    chosen = [found[place] for place in sorted(best)]
    return tuple(DigestLine(fact.at, fact.text, fact.speaker if fact.quoted else "") for fact in chosen)


def _segment_gist(segment: Segment, turns: Iterable[Turn]) -> str:
    """Return what a segment was about. Without a model, a gist quotes all of its facts, so it is made anew."""
    if segment.pruned or not segment.summariser.startswith("extractive"):
        return _untold(segment.gist)
    return _gist_of(segment.facts, [turn for turn in turns if segment.start <= turn.seq < segment.end])


def _gist_of(facts: Iterable[Fact], turns: Sequence[Turn]) -> str:
    """Return the subjects of some turns and their weightiest facts, without those that the digest lists or leaves out.

    Empty if there are neither.
    """
    spoken = [turn for turn in turns if _is_said(turn)]
    said = {turn.seq for turn in spoken}
    told = [fact for fact in facts if fact.text and fact.kind in _IN_GISTS and fact.turn_seq in said]
    best = sorted(told, key=lambda fact: (-fact.importance, -meaning(fact.text).weight, fact.turn_seq))[:_QUOTED]
    gist = make_gist(sorted(best, key=lambda fact: fact.turn_seq), spoken)
    return "" if gist == empty_gist(spoken) else gist


def _untold(gist: str) -> str:
    """Return a gist without sentences about people's own: codes, debts, health."""
    return " ".join(each for each in sentences(gist) if meaning(each).kind is not FactKind.LASTING)


def _people(turns: Iterable[Turn]) -> tuple[str, ...]:
    """Return the last names of everybody who spoke, came or left."""
    names: dict[str, str] = {}
    for turn in turns:
        if turn.kind in {TurnKind.SPEECH, TurnKind.MEMBERSHIP}:
            names.update({part.speaker_id: part.speaker for part in turn.parts})
    return tuple(names.values())


def _spread(lines: Sequence[DigestLine], most: int) -> tuple[DigestLine, ...]:
    """Return at most so many lines, spread over the time, with the first and the last."""
    if len(lines) <= most:
        return tuple(lines)
    return tuple(lines[round(place * (len(lines) - 1) / (most - 1))] for place in range(most))
