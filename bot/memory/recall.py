"""Memory search: queries the index and the embedder; `compaction.memory.recall` ranks the results.

Every outside call has a deadline. If the embedder is slow or broken, the search uses full text alone, and the order of
the rankings if no words are compared in time. `bot.viewers` says what each person may read of a session, and a search
looks at nothing else (`compaction.memory.passage.Readable`). A room may tell aloud of other sessions only what
everybody present may read; what was said in its own session is told to all who are there, as catching up does.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import structlog

from bot.store.tables import LARGEST_NUMBER
from bot.viewers import Viewer, read_by_all
from compaction.errors import EmbeddingError
from compaction.log_events import MemoryEvent
from compaction.memory.passage import ALWAYS, Passage, PassageId, Readable, RecallIndex, Scope, is_of_others
from compaction.memory.recall import (
    FULL_TEXT_WEIGHT,
    LIKENESS_WEIGHT,
    RecallHit,
    SearchQuery,
    SearchTerms,
    choose_terms,
    fuse_rankings,
    parse_query,
    rank_hits,
    top_passages,
)
from compaction.memory.reranking import Comparison
from compaction.model import Seq, SessionId, Turn
from compaction.ports import Embedder, TurnStore, WordComparer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from bot.channel.port import RoomChannel
    from bot.memory.access_log import AccessLog
    from bot.store.attendance import AttendanceStore

log = structlog.get_logger()

# How many passages of each ranking are used, and how many of the fused ranking are read and compared with the query.
RANKED = 60
JUDGED = 90
DEFAULT_LIMIT = 8
# Corrections of corrections that are followed. Few people change their mind more often.
LONGEST_CHAIN = 8
MOST_RECALLED = 50
# The most turns that `recall_turns` returns: about an hour of talk.
MOST_TURNS = 200
# How long to wait for the query's embedding if no spoken reply depends on it.
EMBED_TIMEOUT_S = 5.0
# A search whose words are not compared after this share of the embedder's time goes on without a comparison.
COMPARED_SHARE = 1.5
# How often a search is made if people come or go meanwhile.
SEARCHES = 3
EVERYWHERE = Scope()
# The id of no session.
NO_SESSION = SessionId("")


class Recall:
    """Searches the whole store. Safe for all rooms at once.

    `embedder` None: full text only.
    """

    def __init__(
        self,
        index: RecallIndex,
        turns: TurnStore,
        *,
        embedder: Embedder | None = None,
    ) -> None:
        self._index = index
        self._turns = turns
        self.embedder = embedder

    async def search(
        self,
        query: str,
        scope: Scope = EVERYWHERE,
        *,
        limit: int = DEFAULT_LIMIT,
        embed_within_s: float = EMBED_TIMEOUT_S,
    ) -> tuple[RecallHit, ...]:
        """Return at most `limit` hits, best first; a correction precedes the passage that it corrects.

        A query without a searchable word returns the newest passages of the scope. Raises `StoreError`.
        """
        limit = max(1, min(limit, MOST_RECALLED))
        parsed = parse_query(query)
        if not parsed.terms:
            newest = await self._index.passages(await self._index.newest(scope, limit=limit), scope.readable)
            scores = fuse_rankings([(FULL_TEXT_WEIGHT, [each.id for each in newest])])
            return rank_hits(parsed, SearchTerms((), {}), newest, scores, limit=limit)
        compared_by = asyncio.get_running_loop().time() + COMPARED_SHARE * embed_within_s
        # Runs in parallel with the full-text search, and is cancelled if that fails.
        similarity = asyncio.create_task(self._alike(query, scope, within_s=embed_within_s), name="recall-likeness")
        try:
            choice, worded = await self._by_words(parsed, scope)
            alike = await similarity
        finally:
            similarity.cancel()
        scores = fuse_rankings([(FULL_TEXT_WEIGHT, worded), (LIKENESS_WEIGHT, [passage_id for passage_id, _ in alike])])
        best = await self._index.passages(top_passages(scores, JUDGED), scope.readable)
        # The vector search does not filter out the archive.
        found = [each for each in best if scope.archived or not each.archived]
        comparison = Comparison(query, parsed, choice, found, worded, alike)
        scores |= await self.compared(comparison, by=compared_by)
        found = [*found, *await self._known_corrections(found, scope.readable)]
        with_bot = scope.with_bot or scope.speaker is not None
        return rank_hits(
            parsed,
            choice,
            found,
            scores,
            likeness=dict(alike),
            in_view=scope.in_view,
            with_bot=with_bot,
            limit=limit,
        )

    async def search_for(
        self,
        readable: Callable[[], Awaitable[Readable]],
        query: str,
        scope: Scope,
        *,
        limit: int,
        embed_within_s: float = EMBED_TIMEOUT_S,
    ) -> tuple[RecallHit, ...]:
        """Search for some people; `readable` returns what they may read now. Nothing is found if that changes again and
        again while the search goes on: somebody comes, or opts out. Raises `StoreError`.
        """
        before = await readable()
        for _ in range(SEARCHES):
            found = await self.search(
                query, replace(scope, readable=before), limit=limit, embed_within_s=embed_within_s
            )
            if (now := await readable()) == before:
                return found
            before = now
        return ()

    async def turns(self, session_id: SessionId, first: int, last: int) -> tuple[Turn, ...]:
        """Return the turns from `first` to `last` inclusive. Raises `StoreError`."""
        last = min(last, first + MOST_TURNS - 1)
        if first < 0 or last < first or last >= LARGEST_NUMBER:
            # A model may write any number.
            return ()
        return tuple(await self._turns.turns(session_id, Seq(first), Seq(last + 1)))

    async def _by_words(self, asked: SearchQuery, scope: Scope) -> tuple[SearchTerms, Sequence[PassageId]]:
        counts = await self._index.count(asked.terms, scope)
        choice = choose_terms(asked, counts.passages, counts.total)
        return choice, await self._index.full_text(choice.searched, scope, limit=RANKED)

    async def _alike(self, query: str, scope: Scope, *, within_s: float) -> Sequence[tuple[PassageId, float]]:
        """Return the passages nearest in meaning; empty if the embedder does not answer in time."""
        if self.embedder is None or not query.strip():
            return ()
        try:
            async with asyncio.timeout(within_s):
                (vector,) = await self.embedder.embed([query], urgent=True)
        except TimeoutError:
            log.info(MemoryEvent.EMBEDDING_LATE, within_s=within_s)
            return ()
        except EmbeddingError as error:
            log.warning(MemoryEvent.EMBEDDING_FAILED, problem=error)
            return ()
        return await self._index.find_similar(vector, scope, model=self.embedder.model, limit=RANKED)

    async def compared(self, comparison: Comparison, *, by: float) -> dict[PassageId, float]:
        """Return better scores of all the passages; empty if nothing compares words until `by`, in the loop's time."""
        if not isinstance(self.embedder, WordComparer) or not comparison.passages:
            return {}
        try:
            async with asyncio.timeout_at(by):
                found = await self.embedder.compare_words(comparison.unnamed, comparison.texts)
                likeness = dict(zip(comparison.texts, found, strict=True))
                # It takes ten milliseconds; in a thread it does not delay audio.
                return await asyncio.to_thread(comparison.scores, likeness)
        except TimeoutError:
            log.info(MemoryEvent.COMPARISON_LATE)
            return {}
        except EmbeddingError as error:
            log.warning(MemoryEvent.COMPARISON_FAILED, problem=error)
            return {}

    async def _known_corrections(self, found: Sequence[Passage], readable: Readable) -> Sequence[Passage]:
        """Return the turns that correct the found ones, as folding recorded, and those that correct these, unless they
        were found too.
        """
        known = {each.id for each in found}
        corrections: list[Passage] = []
        newest = found
        for _ in range(LONGEST_CHAIN):
            named: dict[SessionId, list[Seq]] = {}
            for each in newest:
                if each.replaced_by is not None:
                    named.setdefault(each.session_id, []).append(each.replaced_by)
            by_session = [await self._index.find_turns(session_id, seqs) for session_id, seqs in named.items()]
            ids = [each for found_there in by_session for each in found_there if each not in known]
            if not ids:
                break
            newest = await self._index.passages(list(dict.fromkeys(ids)), readable)
            known.update(ids)
            corrections += newest
        return corrections


@dataclass(frozen=True, slots=True)
class RecallScope:
    """The session whose memory is searched, and its guild and channel."""

    session_id: SessionId
    guild_id: int | None = None
    channel_id: int | None = None


class RoomRecall:
    """Memory search of one room, limited to the room's scope.

    `reach`: `session`, `channel` or `server`: how far the room may search. `channel`: the room's: a search of the
    server finds only what was said in the channels that everybody present may enter. `accesses` counts what was shown:
    `note_shown_hits` and `note_shown_turns` tell it. `withheld`: returns the ids of people of a guild who opted out;
    nothing of theirs is found. `attendance`: tells what who is there may read; None: only the operator asks, as in a
    replay.
    """

    def __init__(
        self,
        recall: Recall,
        place: RecallScope,
        *,
        reach: str = "channel",
        channel: RoomChannel | None = None,
        accesses: AccessLog | None = None,
        withheld: Callable[[int | None], frozenset[str]] = lambda _: frozenset(),
        attendance: AttendanceStore | None = None,
    ) -> None:
        self._withheld = withheld
        self._attendance = attendance
        self._recall = recall
        self._accesses = accesses
        self.place = place
        self._reach = reach
        self._channel = channel

    @property
    def scope(self) -> Scope:
        """Return where the room may search now."""
        place = self.place
        if self._reach == "session" or place.channel_id is None:
            return Scope(session_id=place.session_id)
        shared = self._channel.shared_channels() if self._channel is not None and self._reach == "server" else ()
        return Scope(guild_id=place.guild_id, channels=frozenset({place.channel_id, *shared}))

    def scope_beyond(self, seq: Seq, *, elsewhere: bool = True) -> Scope:
        """Return the scope without the turns of the room's own session from `seq` on. `elsewhere`: with other sessions,
        as far as the room may search them.
        """
        scope = self.scope if elsewhere else Scope(session_id=self.place.session_id)
        return replace(scope, in_view=(self.place.session_id, seq))

    async def search(
        self, query: str, scope: Scope, *, limit: int, embed_within_s: float = EMBED_TIMEOUT_S
    ) -> tuple[RecallHit, ...]:
        """Return at most `limit` hits that everybody present may hear, best first. Raises `StoreError`."""
        readable = partial(self._readable, scope)
        return await self._recall.search_for(readable, query, scope, limit=limit, embed_within_s=embed_within_s)

    async def _readable(self, scope: Scope) -> Readable:
        readable = Readable()
        if self._channel is not None and self._attendance is not None:
            readable = await readable_by(self._channel.viewers(), scope, self._attendance, self.place.session_id)
        return replace(readable, withheld=self._withheld(self.place.guild_id))

    async def memory_search(
        self,
        query: str,
        *,
        speaker: str | None = None,
        since: float | None = None,
        until: float | None = None,
        session: SessionId | None = None,
        archived: bool = False,
        limit: int = DEFAULT_LIMIT,
    ) -> tuple[RecallHit, ...]:
        """Return hits for `query`, best first, with the words, the speaker and the time.

        `speaker`: a name, part of a name, or an id. `since`, `until`: UTC epoch seconds. `session`: only that session.
        `archived`: include archived segments. Raises `StoreError`.
        """
        scope = self.scope
        if session is not None and scope.session_id not in {None, session}:
            return ()
        scope = replace(
            scope,
            session_id=session or scope.session_id,
            speaker=speaker,
            since=since,
            until=until,
            archived=archived,
        )
        return await self.search(query, scope, limit=limit)

    async def recall_turns(self, first: int, last: int) -> tuple[Turn, ...]:
        """Return this session's turns from `first` to `last` inclusive, unshortened. Raises `StoreError`."""
        withheld = self._withheld(self.place.guild_id)
        turns = await self._recall.turns(self.place.session_id, first, last)
        return tuple(turn for turn in turns if not withheld or is_of_others(turn, withheld))

    def note_shown_hits(self, shown: Sequence[RecallHit], *, asked: Seq | None) -> None:
        """Count the hits of a search that the model got to see as read. `asked`: the turn that is answered."""
        if self._accesses is not None:
            self._accesses.note_quoted_hits(shown, self.place.session_id, from_seq=asked or 0)

    def note_shown_turns(self, shown: Sequence[Turn]) -> None:
        """Count the recalled turns that somebody got to see as read."""
        if self._accesses is not None and shown:
            self._accesses.note(self.place.session_id, shown[0].seq, shown[-1].seq)


async def readable_by(
    viewers: Sequence[Viewer], scope: Scope, attendance: AttendanceStore, session_id: SessionId = NO_SESSION
) -> Readable:
    """Return what all of these people may read in a scope. `session_id`: the session that they are in. Nobody is told
    of other sessions in an empty channel. Raises `StoreError`.
    """
    channels = scope.channels
    if viewers and channels is not None and all(channels <= each.allowed & each.opened for each in viewers):
        return Readable()
    attended = await attendance.readable(viewers, channels) if viewers else ()
    sessions = {each.id: read_by_all(viewers, each) for each in attended}
    return Readable({**sessions, session_id: (ALWAYS,)})
