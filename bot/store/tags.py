"""By what passages are filtered: short words in a column of the index, where and whose a passage is. Pure.

A filter inside the index is exact for any search and costs next to nothing; one laid over a ranked answer would
leave nothing of it where the filter is narrow.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, TypeAlias

from compaction.language.correction import announces
from compaction.language.terms import normalized_words
from compaction.memory.passage import PassageKind, source_kind, source_speakers, source_text
from compaction.model import SessionId, Turn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compaction.memory.passage import PassageSource, Scope

# A turn that says that something is no longer as it was.
CHANGE_TAG = "kchange"
# A segment in the archive.
ARCHIVED_TAG = "karchived"

# A tag that no passage has.
NOTHING = '"knothing"'

# Each clause must hold; it holds when a passage has all the tags of one of its alternatives.
Clauses: TypeAlias = tuple[tuple[frozenset[str], ...], ...]


def passage_tags(source: PassageSource, session_id: SessionId, guild_id: int | None, channel_id: int | None) -> str:
    """Return what a passage can be filtered by, as words of the index: where it was said and whose it is."""
    tags = [
        f"g{'none' if guild_id is None else guild_id}",
        f"c{'none' if channel_id is None else channel_id}",
        session_tag(session_id),
        kind_tag(source_kind(source)),
    ]
    if isinstance(source, Turn) and announces(source_text(source)):
        tags.append(CHANGE_TAG)
    for speaker_id, name in source_speakers(source):
        tags += [name_tag(word) for word in normalized_words(name)]
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


def tag_clauses(scope: Scope, *, announcing: bool = False) -> Clauses:
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
        named = frozenset(name_tag(word) for word in normalized_words(scope.speaker))
        clauses.append((named, frozenset({speaker_tag(scope.speaker.strip())})))
    if announcing:
        clauses.append((frozenset({CHANGE_TAG}),))
    return tuple(clauses)


def tags_match(clauses: Clauses, tags: frozenset[str]) -> bool:
    """Return whether a passage with these tags fulfils every clause."""
    return all(any(needed <= tags for needed in alternatives) for alternatives in clauses)


def place_tags(scope: Scope) -> tuple[str, ...]:
    """Return the tags of where a passage was said, which may be those of half of all passages."""
    tags = [] if scope.guild_id is None else [f"g{scope.guild_id}"]
    return (*tags, *([] if scope.channel_id is None else [f"c{scope.channel_id}"]))


def any_term_query(terms: Sequence[str]) -> str:
    """Return the FTS5 query for passages that speak of any of `terms`, themselves or beside them."""
    return f"{{own preceding following}} : ({' OR '.join(map(_quoted, terms))})" if terms else ""


def all_terms_query(terms: Sequence[str]) -> str:
    """Return the FTS5 query for passages that speak of all of `terms` themselves."""
    return f"{{own}} : ({' AND '.join(map(_quoted, terms))})" if terms else ""


def match_expression(words: str, clauses: Clauses) -> str:
    """Return the FTS5 query for `words` (a query, or nothing) within the clauses; empty is no condition.

    Terms and tags are letters and digits alone, so nothing in it can be taken for syntax.
    """
    wanted = [f"({words})"] if words else []
    for alternatives in clauses:
        either = [f"({' AND '.join(map(_quoted, sorted(needed)))})" for needed in alternatives if needed]
        # No alternative: nothing can be in it.
        wanted.append(f"({{tags}} : ({' OR '.join(either) or NOTHING}))")
    return " AND ".join(wanted)


def _quoted(term: str) -> str:
    return f'"{term}"'
