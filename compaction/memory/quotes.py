"""Which of what was recalled goes into the prompt of a reply, and how it reads there. Pure.

Few quotes, each about the question, none that the model has before it already: neither a turn of the window nor
something the summary says in the same words. They are made for one reply and are never turns themselves, so nothing
recalled is ever folded again.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from compaction.memory.passage import PassageKind
from compaction.memory.terms import terms
from compaction.model import TurnKind
from compaction.payload import PartKind, PayloadPart, part
from compaction.wording import plain, sentences

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import tzinfo

    from compaction.memory.recall import Asked, Recalled
    from compaction.model import SessionId

# Less of what was asked than this, and less alike: it is about something else.
LEAST_RELEVANCE = 0.34
LEAST_LIKENESS = 0.45
# A sentence whose terms are in view to this share says nothing new.
SAID_ALREADY = 0.8
MAX_QUOTE_CHARS = 400
_FOUND = frozenset({TurnKind.SPEECH})


@dataclass(frozen=True, slots=True)
class Quote:
    """One recalled quote in a prompt, and what it was made of; `text` is what is quoted."""

    part: PayloadPart
    recalled: Recalled
    text: str


def quotes_for(
    found: Sequence[Recalled],
    *,
    asked: Asked,
    session_id: SessionId,
    asked_at: float,
    in_view: Sequence[str],
    most: int,
    max_tokens: int,
    zone: tzinfo,
) -> tuple[Quote, ...]:
    """Return the quotes to send, best first, together at most `max_tokens`.

    `found`: best first. `session_id`: the session at hand; what is from another one says its date. `asked_at`: UTC
    epoch seconds. `in_view`: texts that are sent anyway (the summary's sentences, the window). What people said and
    what was on a screen is quoted; the bot's own words and gists are not.
    """
    seen = [frozenset(terms(text)) for text in in_view]
    quotes: list[Quote] = []
    tokens = 0
    for each in found:
        if len(quotes) == most:
            break
        if not _is_about(each) or each.at >= asked_at:
            continue
        text = _new_words(each, frozenset(asked.terms), seen)
        if not text:
            continue
        made = _part(each, text, session_id, zone)
        if tokens + made.tokens > max_tokens:
            continue
        tokens += made.tokens
        seen.append(frozenset(terms(text)))
        quotes.append(Quote(made, each, text))
    return tuple(quotes)


def _is_about(recalled: Recalled) -> bool:
    if recalled.kind is PassageKind.SEGMENT or (recalled.kind is PassageKind.TURN and recalled.turn_kind not in _FOUND):
        return False
    alike = recalled.likeness is not None and recalled.likeness >= LEAST_LIKENESS
    return recalled.relevance >= LEAST_RELEVANCE or alike


def _new_words(recalled: Recalled, asked: frozenset[str], seen: Sequence[frozenset[str]]) -> str:
    """Return the quote without the sentences that are in view already; nothing when no other is about the question."""
    said = sentences(recalled.text)
    new = [sentence for sentence in said if not _said(sentence, seen)]
    about = [sentence for sentence in said if asked.intersection(terms(sentence))]
    if not new or (about and not any(sentence in new for sentence in about)):
        return ""
    text = plain(recalled.text) if len(new) == len(said) else f"… {' … '.join(new)}"
    if len(text) > MAX_QUOTE_CHARS:
        text = f"{text[:MAX_QUOTE_CHARS].rsplit(' ', 1)[0]} … [cut]"
    return text


def _said(sentence: str, seen: Sequence[frozenset[str]]) -> bool:
    own = frozenset(terms(sentence))
    return not own or any(len(own & each) >= SAID_ALREADY * len(own) for each in seen)


def _part(recalled: Recalled, text: str, session_id: SessionId, zone: tzinfo) -> PayloadPart:
    at = datetime.fromtimestamp(recalled.at, zone)
    here = recalled.session_id == session_id
    when = f"{at:%H:%M}" if here else f"{at.day} {at:%B}, {at:%H:%M}"
    who = plain(recalled.speaker) or "somebody"
    told = f"on {who}'s screen: {text}" if recalled.kind is PassageKind.NOTE else f"{who}: {text}"
    old = " (no longer so: it was corrected later)" if recalled.superseded_by is not None else ""
    where = f", turn {recalled.seq}" if here and recalled.seq is not None else ""
    # No seqs: a quote is beside the window and covers no turn of it.
    return part("system", PartKind.RECALL, f"[{when}] From memory{where}, {told}{old}", timestamp=recalled.at)
