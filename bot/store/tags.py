"""By what passages are filtered: short words in a column of the index, where and whose a passage is. Pure.

A filter inside the index is exact for any search and costs next to nothing; one laid over a ranked answer would
leave nothing of it where the filter is narrow.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, TypeAlias

from compaction.memory.passage import PassageKind, source_kind, source_speakers, source_text
from compaction.memory.terms import folded
from compaction.model import SessionId, Turn
from compaction.wording import announces_change

if TYPE_CHECKING:
    from compaction.memory.passage import Scope, Source

# A turn that says that something is no longer as it was.
CHANGE_TAG = "kchange"

# Each clause must hold; it holds when a passage has all the tags of one of its alternatives.
Clauses: TypeAlias = tuple[tuple[frozenset[str], ...], ...]


def tags_of(source: Source, session_id: SessionId, guild_id: int | None, channel_id: int | None) -> str:
    """Return what a passage can be filtered by, as words of the index: where it was said and whose it is."""
    tags = [
        f"g{'none' if guild_id is None else guild_id}",
        f"c{'none' if channel_id is None else channel_id}",
        session_tag(session_id),
        kind_tag(source_kind(source)),
    ]
    if isinstance(source, Turn) and announces_change(source_text(source)):
        tags.append(CHANGE_TAG)
    for speaker_id, name in source_speakers(source):
        tags += [name_tag(word) for word in folded(name)]
        if speaker_id:
            tags.append(speaker_tag(speaker_id))
    return " ".join(dict.fromkeys(tags))


def kind_tag(kind: PassageKind) -> str:
    """Return the tag of a sort of passage."""
    return f"k{kind.value}"


def session_tag(session_id: str) -> str:
    """Return the tag of a session: its id may hold any character, a tag only letters and digits."""
    return f"s{_digest(session_id)}"


def speaker_tag(speaker_id: str) -> str:
    """Return the tag of a speaker's id."""
    return f"u{_digest(speaker_id)}"


def name_tag(word: str) -> str:
    """Return the tag of a word of a display name. `word` is folded."""
    return f"w{word}" if word.isascii() and word.isalnum() else f"x{_digest(word)}"


def _digest(text: str) -> str:
    return hashlib.blake2s(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def clauses_of(scope: Scope, *, announcing: bool = False) -> Clauses:
    """Return what a passage's tags must be for it to be in the scope; times and what is in view are no tags."""
    clauses: list[tuple[frozenset[str], ...]] = []
    if scope.guild_id is not None:
        clauses.append((frozenset({f"g{scope.guild_id}"}),))
    if scope.channel_id is not None:
        clauses.append((frozenset({f"c{scope.channel_id}"}),))
    if scope.session_id is not None:
        clauses.append((frozenset({session_tag(scope.session_id)}),))
    if scope.kinds is not None:
        clauses.append(tuple(frozenset({kind_tag(kind)}) for kind in sorted(scope.kinds)))
    if scope.speaker is not None:
        named = frozenset(name_tag(word) for word in folded(scope.speaker))
        clauses.append((named, frozenset({speaker_tag(scope.speaker.strip())})))
    if announcing:
        clauses.append((frozenset({CHANGE_TAG}),))
    return tuple(clauses)


def holds(clauses: Clauses, tags: frozenset[str]) -> bool:
    """Return whether a passage with these tags fulfils every clause."""
    return all(any(needed <= tags for needed in alternatives) for alternatives in clauses)


def match_expression(terms: tuple[str, ...], clauses: Clauses) -> str:
    """Return the FTS5 query for passages with any of `terms` (all passages without terms) within the clauses.

    Terms and tags are letters and digits alone, so nothing in it can be taken for syntax. Empty: no condition.
    """
    wanted = [f"({{own preceding following}} : ({' OR '.join(_quoted(term) for term in terms)}))"] if terms else []
    for alternatives in clauses:
        either = " OR ".join(
            f"({' AND '.join(_quoted(tag) for tag in sorted(needed))})" for needed in alternatives if needed
        )
        wanted.append(f"({{tags}} : ({either}))" if either else '"nothing" AND ""')
    return " AND ".join(wanted)


def _quoted(term: str) -> str:
    return f'"{term}"'
