"""Tags that passages are filtered by (guild, channel, session, kind, speaker). Pure functions.

Tags are short words in a column of the full-text index. Filtering inside the index is exact and nearly free. Filtering
a ranked result afterwards would leave nothing if the filter is narrow.
"""

from __future__ import annotations

import hashlib
from typing import TypeAlias

from compaction.language.terms import normalized_words
from compaction.memory.passage import PassageKind, PassageSource, Scope, source_kind, source_speakers
from compaction.model import SessionId, Turn, TurnKind

# The kind of the passages of facts (`indexing`). They are only a way to a turn, so it is no `PassageKind`.
FACT_KIND = "fact"

# A segment in the archive.
ARCHIVED_TAG = "karchived"

# What the bot said, and what a model wrote of a turn: withheld words may be in them.
ASSISTANT_TAG = "kassistant"
FACT_TAG = "kfact"

# A tag that no passage has.
NOTHING_TAG = "knothing"

# A passage must match every clause. It matches a clause if it has all tags of one of its alternatives.
Clauses: TypeAlias = tuple[tuple[frozenset[str], ...], ...]


def passage_tags(source: PassageSource, session_id: SessionId, guild_id: int | None, channel_id: int | None) -> str:
    """Return the tags of a passage, separated by spaces, for the column of the index. None: of no guild or channel."""
    tags = [
        f"g{'none' if guild_id is None else guild_id}",
        f"c{'none' if channel_id is None else channel_id}",
        session_tag(session_id),
        kind_tag(source_kind(source)),
    ]
    if isinstance(source, Turn) and source.kind is TurnKind.ASSISTANT:
        tags.append(ASSISTANT_TAG)
    for speaker_id, name in source_speakers(source):
        tags += [name_tag(word) for word in normalized_words(name)]
        if speaker_id:
            tags.append(speaker_tag(speaker_id))
    return " ".join(dict.fromkeys(tags))


def kind_tag(kind: PassageKind) -> str:
    """Return the tag of the passages of one kind."""
    return f"k{kind.value}"


def session_tag(session_id: str) -> str:
    """Return the tag of a session. It is hashed, because tags may contain only letters and digits."""
    return f"s{_digest(session_id)}"


def speaker_tag(speaker_id: str) -> str:
    """Return the tag of a speaker. It is hashed, as in `session_tag`."""
    return f"u{_digest(speaker_id)}"


def name_tag(word: str) -> str:
    """Return the tag of a word of a display name. `word` is folded."""
    return f"w{word}" if word.isascii() and word.isalnum() else f"x{_digest(word)}"


def _digest(text: str) -> str:
    return hashlib.blake2s(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def tag_clauses(scope: Scope) -> Clauses:
    """Return the clauses of a scope. They leave out its times and its view, which are not tags, and `left_out_tags`."""
    clauses: list[tuple[frozenset[str], ...]] = []
    if scope.guild_id is not None:
        clauses.append((frozenset({f"g{scope.guild_id}"}),))
    if scope.channels is not None:
        clauses.append(tuple(frozenset({f"c{channel_id}"}) for channel_id in sorted(scope.channels)))
    if scope.session_id is not None:
        clauses.append((frozenset({session_tag(scope.session_id)}),))
    if scope.kinds is not None:
        clauses.append(tuple(frozenset({kind_tag(kind)}) for kind in sorted(scope.kinds)))
    if scope.readable.withheld:
        clauses.append((frozenset({kind_tag(PassageKind.TURN)}),))
    if scope.speaker is not None:
        named = frozenset(name_tag(word) for word in normalized_words(scope.speaker))
        clauses.append((named, frozenset({speaker_tag(scope.speaker.strip())})))
    return tuple(clauses)


def left_out_tags(scope: Scope) -> frozenset[str]:
    """Return the tags of which a passage may have none, since people withhold their words (`Readable.withheld`)."""
    withheld = scope.readable.withheld
    return frozenset({ASSISTANT_TAG, FACT_TAG, *map(speaker_tag, withheld)}) if withheld else frozenset()


def tags_match(scope: Scope, tags: frozenset[str]) -> bool:
    """Return whether a passage with these tags is in a scope. An alternative without tags matches nothing."""
    matches = all(any(needed and needed <= tags for needed in alternatives) for alternatives in tag_clauses(scope))
    return matches and left_out_tags(scope).isdisjoint(tags)
