"""Selects the search hits that are quoted in the prompt of a reply, and formats the quotes. Pure.

Only a few hits are quoted. They must be about the question, and must not repeat what the prompt already contains (the
recent turns, or the summary in the same words). A quote says which of its words are whose. Quotes are made for one
reply and are not stored as turns, so recalled text is never folded again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, TypeAlias

from compaction.clock_time import format_clock_time
from compaction.language.terms import normalized_words, terms
from compaction.language.text import cut_at_word, plain, sentences
from compaction.memory.passage import PassageKind
from compaction.model import SAID, SessionId
from compaction.payload import PartKind, PayloadPart, data_part
from compaction.speaker_names import plain_name
from compaction.untrusted_text import inline

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import tzinfo

    from compaction.memory.recall import RecallHit, SearchQuery
    from compaction.model import TurnPart

# A hit below this is about something else. Of 147 questions about other evenings than those of `roomtone bench memory`,
# 96.6 % have their answer among the quotes, with 193 tokens on average; at 0.34 it is 93.2 % with 126.
LEAST_RELEVANCE = 0.25
MAX_QUOTE_CHARS = 400
# Between sentences of a quote that were not said together.
_GAP = " … "
_REPLACED = "(no longer so: it was corrected later)"
# A text that the prompt has, with its speaker's name: its words, and these in their order.
_Seen: TypeAlias = tuple[frozenset[str], str]
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
    """One quote in a prompt, and the search hit it comes from. `said`: the quoted words of each speaker."""

    part: PayloadPart
    recalled: RecallHit
    said: tuple[TurnPart, ...]

    @property
    def text(self) -> str:
        """Return the quoted words, a line for each speaker."""
        return "\n".join(part.text for part in self.said)


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
    `asked_at`: UTC epoch seconds. `in_view`: texts that the prompt contains anyway, with their speakers (summary
    sentences, recent turns). Only people's words and screen notes are quoted, not the bot's own words or gists.
    """
    seen = [_seen(speaker, text) for speaker, text in in_view]
    quotes: list[Quote] = []
    tokens = 0
    for each in found:
        if len(quotes) == most:
            break
        is_said = each.kind is PassageKind.NOTE or (each.kind is PassageKind.TURN and each.turn_kind in SAID)
        if not is_said or each.relevance < LEAST_RELEVANCE or each.at >= asked_at:
            continue
        chosen = _chosen_sentences(each, frozenset(asked.terms), seen)
        if chosen is None:
            continue
        said = quoted_parts(each.parts, chosen)
        made = quote_part(each, said, session_id=session_id, zone=zone)
        if tokens + made.tokens > max_tokens:
            continue
        tokens += made.tokens
        seen += [_seen(part.speaker, part.text) for part in said]
        quotes.append(Quote(made, each, said))
    return tuple(quotes)


def _chosen_sentences(recalled: RecallHit, asked: frozenset[str], seen: Sequence[_Seen]) -> tuple[int, ...] | None:
    """Return the numbers of the hit's sentences to quote: those that the prompt does not contain yet. Empty means all.

    Returns None if no sentence is new, or if none of the new sentences is about the question although others are. Of
    what was corrected, only the sentences about the question are quoted, because the correction is about them.
    """
    said = [(part, sentence) for part in recalled.parts for sentence in sentences(part.text)]
    shared = [len(asked.intersection(terms(text))) for _, text in said]
    new = [place for place, (who, text) in enumerate(said) if not _is_in_view(who.speaker, text, seen)]
    if any(shared):
        if not any(shared[place] for place in new):
            # 'My car. It's only ready on Monday.': the question has the words of the first sentence, and so is the turn
            # about it. A correction is not left out for that.
            echoed = [place for place, (_, text) in enumerate(said) if shared[place] and asked.issuperset(terms(text))]
            if not (new and echoed and recalled.supersedes):
                return None
            new = sorted({*new, *echoed})
        if recalled.superseded_by is not None:
            new = [place for place in new if shared[place]]
    if not new:
        return None
    fitting = _fitting(new, [text for _, text in said], shared)
    return () if len(fitting) == len(said) else fitting


def _fitting(new: Sequence[int], said: Sequence[str], shared: Sequence[int]) -> tuple[int, ...]:
    """Return which of the new sentences fit into a quote: first those with most words of the question, then what
    follows the best of them. At least one, which is cut if it is too long.
    """
    best = max(new, key=lambda place: (shared[place], -place))
    room = MAX_QUOTE_CHARS
    chosen: list[int] = []
    for place in sorted(new, key=lambda place: (-shared[place], place < best, place)):
        if len(said[place]) <= room:
            room -= len(said[place]) + len(_GAP)
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
            text = plain(part.text) if len(own) == len(said) else f"… {_GAP.join(said[place] for place in own)}"
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
    return not terms(sentence) or any(wanted in run and who <= spoken for spoken, run in seen)


def _run_of(found: Sequence[str]) -> str:
    return f" {' '.join(found)} "


def quote_part(recalled: RecallHit, said: Sequence[TurnPart], *, session_id: SessionId, zone: tzinfo) -> PayloadPart:
    """Return a quote of a search hit as a part of the prompt, with a line for each speaker.

    `said`: the words to quote (`quoted_parts`). `session_id`: the current session.
    """
    screen = recalled.kind is PassageKind.NOTE
    cited = Citation(recalled.kind, recalled.session_id, str(recalled.note_id if screen else recalled.seq))
    here = cited.session_id == session_id
    day = datetime.fromtimestamp(recalled.at, zone)
    when = f"{'' if here else f'{day.day} {day:%B}, '}{format_clock_time(recalled.at, zone)}"
    where = f", turn {cited.key}" if here and cited.kind is PassageKind.TURN else ""
    lines = [
        f"on {plain_name(part.speaker)}'s screen: {part.text}" if screen else f"{plain_name(part.speaker)}: {part.text}"
        for part in said
    ]
    if recalled.superseded_by is not None:
        lines = [*lines, _REPLACED] if len(lines) > 1 else [f"{lines[0]} {_REPLACED}"]
    # The part has no seqs, because a quote does not stand for turns of the current window.
    text = "\n".join((f"[{when}] From memory{where}, {lines[0]}", *lines[1:]))
    return data_part(PartKind.RECALL, text, timestamp=recalled.at, refs=(cited.ref,))
