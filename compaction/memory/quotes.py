"""Selects the search hits that are quoted in the prompt of a reply, and formats the quotes. Pure.

Only a few hits are quoted. They must be about the question, and must not repeat what the prompt already contains (the
recent turns, or the summary in the same words). Quotes are made for one reply and are not stored as turns, so recalled
text is never folded again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from compaction.language.terms import terms
from compaction.language.text import plain, sentences
from compaction.memory.passage import PassageKind
from compaction.model import SessionId, TurnKind
from compaction.payload import PartKind, PayloadPart, data_part
from compaction.speaker_names import plain_name
from compaction.untrusted_text import inline

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import tzinfo

    from compaction.memory.query import SearchQuery
    from compaction.memory.recall import RecallHit

# A hit below this is about something else.
LEAST_RELEVANCE = 0.34
MAX_QUOTE_CHARS = 400
_QUOTED_KINDS = frozenset({TurnKind.SPEECH})
_REF = re.compile(r"(?P<kind>turn|note):(?P<session>.+)#(?P<key>[^#]+?)(?:@(?P<chosen>[\d,]*)(?P<replaced>!)?)?$")


@dataclass(frozen=True, slots=True)
class Citation:
    """The source of a quote. `key`: the seq of the turn, or the id of the note. `at`: UTC epoch seconds.

    `chosen`: the indices of the quoted sentences; empty means all sentences. `replaced`: the source was corrected
    later.
    """

    kind: PassageKind
    session_id: SessionId
    key: str
    speaker: str
    at: float
    chosen: tuple[int, ...]
    replaced: bool

    @property
    def ref(self) -> str:
        """Return the reference for log lines. It contains no words of the conversation."""
        how = ",".join(map(str, self.chosen)) + ("!" if self.replaced else "")
        return f"{self.kind.value}:{self.session_id}#{self.key}" + (f"@{how}" if how else "")


@dataclass(frozen=True, slots=True)
class CitationRef:
    """A parsed `Citation.ref`."""

    kind: PassageKind
    session_id: SessionId
    key: str
    chosen: tuple[int, ...]
    replaced: bool


def parse_citation(ref: str) -> CitationRef | None:
    """Parse a `Citation.ref`. Returns None for any other text."""
    found = _REF.match(ref)
    if found is None:
        return None
    chosen = tuple(int(index) for index in (found["chosen"] or "").split(",") if index)
    return CitationRef(
        PassageKind(found["kind"]), SessionId(found["session"]), found["key"], chosen, found["replaced"] is not None
    )


@dataclass(frozen=True, slots=True)
class Quote:
    """One quote in a prompt, and the search hit it comes from. `text`: the quoted words."""

    part: PayloadPart
    recalled: RecallHit
    text: str


def select_quotes(
    found: Sequence[RecallHit],
    *,
    asked: SearchQuery,
    session_id: SessionId,
    asked_at: float,
    in_view: Sequence[tuple[str, str]],
    most: int,
    max_tokens: int,
    zone: tzinfo,
) -> tuple[Quote, ...]:
    """Return the quotes to send, best first: at most `most` quotes with at most `max_tokens` tokens in total.

    `found`: search hits, best first. `session_id`: the current session; quotes from other sessions include a date.
    `asked_at`: UTC epoch seconds. `in_view`: texts that the prompt contains anyway (summary sentences, recent turns).
    Only people's words and screen notes are quoted, not the bot's own words or gists.
    """
    seen = [frozenset(terms(f"{speaker} {text}")) for speaker, text in in_view]
    quotes: list[Quote] = []
    tokens = 0
    for each in found:
        if len(quotes) == most:
            break
        if not _is_about(each) or each.at >= asked_at:
            continue
        chosen = _new_sentences(each, frozenset(asked.terms), seen)
        if chosen is None:
            continue
        cited = _cited(each, chosen)
        text = _quoted_text(each.text, chosen)
        made = quote_part(cited, each.text, session_id=session_id, zone=zone)
        if tokens + made.tokens > max_tokens:
            continue
        tokens += made.tokens
        seen.append(frozenset(terms(f"{each.speaker} {text}")))
        quotes.append(Quote(made, each, text))
    return tuple(quotes)


def _is_about(recalled: RecallHit) -> bool:
    if recalled.kind is PassageKind.SEGMENT or (
        recalled.kind is PassageKind.TURN and recalled.turn_kind not in _QUOTED_KINDS
    ):
        return False
    return recalled.relevance >= LEAST_RELEVANCE


def _new_sentences(
    recalled: RecallHit, asked: frozenset[str], seen: Sequence[frozenset[str]]
) -> tuple[int, ...] | None:
    """Return the indices of the hit's sentences that the prompt does not contain yet. Empty means all sentences.

    Returns None if no sentence is new, or if none of the new sentences is about the question although others are.
    """
    said = sentences(recalled.text)
    new = tuple(index for index, sentence in enumerate(said) if not _is_in_view(recalled.speaker, sentence, seen))
    about = [index for index, sentence in enumerate(said) if asked.intersection(terms(sentence))]
    if not new or (about and not any(index in new for index in about)):
        return None
    return () if len(new) == len(said) else new


def _quoted_text(whole: str, chosen: Sequence[int]) -> str:
    said = sentences(whole)
    text = f"… {' … '.join(said[index] for index in chosen)}" if chosen else plain(whole)
    text = inline(text)
    if len(text) > MAX_QUOTE_CHARS:
        text = f"{text[:MAX_QUOTE_CHARS].rsplit(' ', 1)[0]} … [cut]"
    return text


def _is_in_view(speaker: str, sentence: str, seen: Sequence[frozenset[str]]) -> bool:
    """Return whether one text of the prompt has every word of a sentence and its speaker's name.

    A text that lacks one word may be about another person or name another value.
    """
    own = frozenset(terms(sentence))
    return not own or any(own.union(terms(speaker)) <= each for each in seen)


def _cited(recalled: RecallHit, chosen: tuple[int, ...]) -> Citation:
    key = recalled.note_id if recalled.kind is PassageKind.NOTE else recalled.seq
    return Citation(
        kind=recalled.kind,
        session_id=recalled.session_id,
        key=str(key),
        speaker=recalled.speaker,
        at=recalled.at,
        chosen=chosen,
        replaced=recalled.superseded_by is not None,
    )


def quote_part(cited: Citation, whole: str, *, session_id: SessionId, zone: tzinfo) -> PayloadPart:
    """Return a quote as a part of the prompt. `whole`: the full text of its source. `session_id`: the
    current session.
    """
    at = datetime.fromtimestamp(cited.at, zone)
    here = cited.session_id == session_id
    when = f"{at:%H:%M}" if here else f"{at.day} {at:%B}, {at:%H:%M}"
    who = ", ".join(plain_name(each) for each in cited.speaker.split(", "))
    text = _quoted_text(whole, cited.chosen)
    quoted = f"on {who}'s screen: {text}" if cited.kind is PassageKind.NOTE else f"{who}: {text}"
    old = " (no longer so: it was corrected later)" if cited.replaced else ""
    where = f", turn {cited.key}" if here and cited.kind is PassageKind.TURN else ""
    # The part has no seqs, because a quote does not stand for turns of the current window.
    return data_part(
        PartKind.RECALL,
        f"[{when}] From memory{where}, {quoted}{old}",
        timestamp=cited.at,
        refs=(cited.ref,),
    )
