"""Stores the prompts that models were sent, beside the turns of their session, so that people can look at them.

Prompts hold words of everybody, also of other sessions. They go with their session. All of a server go whenever
anything of it is forgotten, because nobody can tell whose words they contain.
"""

from __future__ import annotations

import asyncio
import json
import zlib
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import Row, Select, delete, insert, or_, select

from bot.store.speakers import may_list
from bot.store.tables import sent_prompts, sessions
from compaction.model import Mode, Seq, SessionId
from compaction.payload import MessageToolCall, PartKind, PayloadPart, evicted_range, tokens_by_kind

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from sqlalchemy.ext.asyncio import AsyncConnection

    from bot.store.database import Database

# The newest prompts of a session that are kept: those of a long evening.
MOST_KEPT = 500


@dataclass(frozen=True, slots=True)
class PromptFigures:
    """What one model call was sent, in numbers.

    `answer_to`: the turn that the reply answers. `at`: UTC epoch seconds. `tokens`: by kind of part. `evicted`: the
    inclusive range of turns that the eviction note stands for. `spoken`: by speech-to-speech, whose conversation holds
    sound; it is stored as text.
    """

    session_id: SessionId
    answer_to: int
    at: float
    mode: str
    cursor: int
    summary_revision: int
    max_input_tokens: int | None
    tokens: dict[str, int]
    evicted: tuple[int, int] | None
    spoken: bool

    @property
    def total_tokens(self) -> int:
        return sum(self.tokens.values())


@dataclass(frozen=True, slots=True)
class SentPrompt:
    """What one model call was sent: its messages in order. `people`: the ids of those whom it names as present or gone,
    who may have said nothing.
    """

    figures: PromptFigures
    parts: tuple[PayloadPart, ...]
    people: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        parts: Sequence[PayloadPart],
        session_id: SessionId,
        *,
        answer_to: int,
        at: float,
        mode: Mode,
        cursor: int,
        summary_revision: int,
        max_input_tokens: int | None = None,
        spoken: bool = False,
        people: Iterable[str] = (),
    ) -> SentPrompt:
        """Return the prompt of these parts. `people`: see `SentPrompt`; the others: see `PromptFigures`."""
        return cls(
            PromptFigures(
                session_id=session_id,
                answer_to=answer_to,
                at=at,
                mode=mode.value,
                cursor=cursor,
                summary_revision=summary_revision,
                max_input_tokens=max_input_tokens,
                tokens=tokens_by_kind(parts),
                evicted=evicted_range(parts),
                spoken=spoken,
            ),
            tuple(parts),
            tuple(people),
        )


class PromptStore:
    """Sent prompts in an open `Database`. Raises `StoreError`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def store(self, prompts: Sequence[SentPrompt], *, is_current: Callable[[int], bool]) -> bool:
        """Store prompts of one session. Does nothing if the session is not stored.

        `is_current`: returns whether nobody else has made this revision since the prompts were sent. Otherwise
        something may have been forgotten: nothing is stored, and the result is False.
        """
        session_id = prompts[0].figures.session_id
        values = await asyncio.to_thread(lambda: list(map(_values, prompts)))
        async with self._database.writing() as connection:
            revision = await connection.scalar(select(sessions.c.revision).where(sessions.c.id == session_id))
            if revision is None:
                return True
            if not is_current(revision):
                return False
            await connection.execute(insert(sent_prompts), values)
            of_session = sent_prompts.c.session_id == session_id
            newest = select(sent_prompts.c.id).where(of_session).order_by(sent_prompts.c.id.desc())
            oldest_kept = await connection.scalar(newest.offset(MOST_KEPT - 1).limit(1))
            if oldest_kept is not None:
                await connection.execute(delete(sent_prompts).where(of_session, sent_prompts.c.id < oldest_kept))
        return True

    async def figures(self, session_id: SessionId) -> tuple[PromptFigures, ...]:
        """Return the prompts of a session in numbers, oldest first."""
        wanted = select(sent_prompts.c.figures).where(sent_prompts.c.session_id == session_id)
        return tuple(map(_figures, await self._database.values(wanted.order_by(sent_prompts.c.id))))

    async def sent_for(self, session_id: SessionId, answer_to: int) -> tuple[SentPrompt, ...]:
        """Return what models were sent for the reply to a turn, oldest first: one prompt for each call."""
        wanted = select(sent_prompts).where(
            sent_prompts.c.session_id == session_id, sent_prompts.c.answer_to == answer_to
        )
        found = await self._database.rows(wanted.order_by(sent_prompts.c.id))
        return await asyncio.to_thread(lambda: tuple(map(_prompt, found)))


async def forget_prompts(connection: AsyncConnection, guild_ids: Collection[int | None]) -> int:
    """Delete all prompts of these servers and of no server, inside a write transaction. Returns how many."""
    of_servers = sessions.c.guild_id.in_([each for each in guild_ids if each is not None])
    theirs = select(sessions.c.id).where(or_(sessions.c.guild_id.is_(None), of_servers))
    return (await connection.execute(delete(sent_prompts).where(sent_prompts.c.session_id.in_(theirs)))).rowcount


def sessions_that_name(person_id: str) -> Select[Any]:
    """Return the query of the sessions of which a prompt names a person, each with its server."""
    named = select(sent_prompts.c.session_id).where(may_list(sent_prompts.c.people, person_id))
    return select(sessions.c.id, sessions.c.guild_id).where(sessions.c.id.in_(named)).order_by(sessions.c.id)


async def people_named(connection: AsyncConnection) -> frozenset[str]:
    """Return the ids of all whom a prompt names."""
    found = await connection.scalars(select(sent_prompts.c.people).distinct())
    return frozenset(person_id for people in found for person_id in json.loads(people))


def _values(prompt: SentPrompt) -> dict[str, object]:
    """Return the row of a prompt. Parts repeat most of the prompt before, so they are compressed."""
    figures = prompt.figures
    parts = json.dumps([asdict(part) for part in prompt.parts], ensure_ascii=False)
    return {
        "session_id": figures.session_id,
        "answer_to": figures.answer_to,
        "figures": json.dumps(asdict(figures)),
        "parts": zlib.compress(parts.encode("utf-8", "surrogatepass")),
        "people": json.dumps(prompt.people),
    }


def _figures(stored: str) -> PromptFigures:
    values: dict[str, Any] = json.loads(stored)
    evicted = values.pop("evicted")
    return PromptFigures(**values, evicted=None if evicted is None else (evicted[0], evicted[1]))


def _prompt(row: Row[Any]) -> SentPrompt:
    stored: list[dict[str, Any]] = json.loads(zlib.decompress(row.parts).decode("utf-8", "surrogatepass"))
    return SentPrompt(_figures(row.figures), tuple(map(_part, stored)), tuple(json.loads(row.people)))


def _part(stored: dict[str, Any]) -> PayloadPart:
    calls = tuple(MessageToolCall(**call) for call in stored.pop("tool_calls"))
    first, last = stored.pop("seq_from"), stored.pop("seq_to")
    return PayloadPart(
        kind=PartKind(stored.pop("kind")),
        seq_from=None if first is None else Seq(first),
        seq_to=None if last is None else Seq(last),
        refs=tuple(stored.pop("refs")),
        tool_calls=calls,
        **stored,
    )
