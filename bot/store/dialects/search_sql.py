"""The queries of memory search that both databases share. Each adds how it finds passages with a term.

A query looks at nothing but the passages of its scope, so what somebody may not read changes neither what is found nor
its order: a term counts by how many of these passages have it (`compaction.memory.recall.choose_terms`), the length of
a passage is compared with a constant, and neighbours are passages that were found too.

The index has one entry for each passage with a term. Those of other people are read too before they are left out, which
takes some microseconds each.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bot.store.dialects.port import Query
from bot.store.search.tags import ARCHIVED_TAG, FACT_KIND
from compaction.memory.passage import K1, MOST_SCORED, NEIGHBOUR_SHARE, TYPICAL_TERMS, B, PassageKind, Scope

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

# A sum of floats depends on their order, and the rank of equal passages must not.
_PRECISION = 1_000_000.0
_SCORE = f"""sum(CAST(round({_PRECISION} * weight * often * {K1 + 1}
    / (often + {K1} * ({1 - B} + {B} * size / {float(TYPICAL_TERMS)}))) AS bigint))"""
_RANKED = f"""
    hits AS ({{hits}}),
    turns_found AS (SELECT DISTINCT id, session_id, start_seq, size FROM hits WHERE kind = '{PassageKind.TURN.value}'),
    shares AS (
        SELECT id, term, weight, size, CAST(1 AS float) AS share FROM hits
        UNION ALL
        SELECT t.id, h.term, h.weight, t.size, CAST({NEIGHBOUR_SHARE} AS float)
        FROM turns_found t CROSS JOIN (SELECT -1 AS step UNION ALL SELECT 1) beside
        JOIN hits h ON h.session_id = t.session_id AND h.start_seq = t.start_seq + beside.step
        WHERE h.kind = '{PassageKind.TURN.value}'
    ),
    counted AS (SELECT id, term, weight, size, sum(share) AS often FROM shares GROUP BY id, term, weight, size)
    SELECT c.id FROM counted c WHERE c.id IN (SELECT id FROM hits)
    GROUP BY c.id ORDER BY {_SCORE} DESC, c.id DESC LIMIT :limit
"""  # noqa: S608 - constants
_SIZE = "length(p.own) - length(replace(p.own, ' ', '')) + 1"


@dataclass(frozen=True, slots=True)
class FoundRows:
    """Where passages come from: `source` is the text after FROM, and `conditions` are those of its rows."""

    source: str
    conditions: tuple[str, ...]
    values: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class SearchSql:
    """`rows`: returns the passages of a scope with a term, or all; the name of its parameter must be new in the query.
    `readable`: selects session_id, since and until of the lists in the parameter `readable`.
    """

    rows: Callable[[str | None, Scope, str], FoundRows]
    readable: str

    def count_terms(self, terms: Sequence[str], scope: Scope) -> Query:
        """Return rows of (number of the term, passages with it); -1 for all passages. None counts beyond the most."""
        values: dict[str, object] = {"most": MOST_SCORED}
        counts = [
            f"SELECT {number} AS term, count(*) AS holding FROM ({self._select(term, scope, number, values)}) t{number + 1}"
            for number, term in enumerate((None, *terms), start=-1)
        ]
        return self._query(scope, " UNION ALL ".join(counts), values)

    def search_words(self, weights: Mapping[str, float], scope: Scope, limit: int) -> Query:
        """Return the ids of passages with any term, the best first."""
        values: dict[str, object] = {"most": MOST_SCORED, "limit": limit}
        hits: list[str] = []
        for number, (term, weight) in enumerate(weights.items()):
            values[f"weight{number}"] = weight
            rows = self._select(term, scope, number, values, "p.session_id, p.start_seq, p.kind, " + _SIZE + " AS size")
            hits.append(f"SELECT {number} AS term, CAST(:weight{number} AS float) AS weight, h.* FROM ({rows}) h")
        return self._query(scope, _RANKED.format(hits=" UNION ALL ".join(hits)), values, joins=True)

    def search_newest(self, scope: Scope, limit: int) -> Query:
        """Return the ids of the newest passages, the newest first."""
        values: dict[str, object] = {"most": limit}
        rows = self._select(None, scope, 0, values, where=(f"p.kind <> '{FACT_KIND}'",))
        return self._query(scope, rows, values)

    def _select(
        self,
        term: str | None,
        scope: Scope,
        number: int,
        values: dict[str, object],
        columns: str = "",
        where: tuple[str, ...] = (),
    ) -> str:
        """Return a SELECT of the newest passages in a scope, with a term if there is one; add its `values`."""
        found = self.rows(term, scope, f"match{number + 1}")
        conditions, more = _row_conditions(scope)
        values |= {**found.values, **more}
        wanted = " AND ".join((*found.conditions, *conditions, *where)) or "true"
        # A turn of no length is in two stays that touch.
        distinct = "" if scope.readable.sessions is None else "DISTINCT "
        columns = f"p.id, {columns}" if columns else "p.id"
        # No outside text is in the SQL: words are parameters.
        return f"SELECT {distinct}{columns} FROM {found.source} WHERE {wanted} ORDER BY p.id DESC LIMIT :most"  # noqa: S608

    def _query(self, scope: Scope, sql: str, values: Mapping[str, object], *, joins: bool = False) -> Query:
        sessions = scope.readable.sessions
        if sessions is None:
            return Query(f"WITH {sql}" if joins else sql, values)
        rows = [(session_id, *stretch) for session_id, stretches in sorted(sessions.items()) for stretch in stretches]
        readable = f"WITH readable AS MATERIALIZED ({self.readable})"
        return Query(f"{readable}{',' if joins else ''} {sql}", {**values, "readable": json.dumps(rows)})


def without_places(scope: Scope) -> Scope:
    """Return a scope without its guild and channels, which are conditions of the rows."""
    return replace(scope, guild_id=None, channels=None)


def _row_conditions(scope: Scope) -> tuple[list[str], dict[str, object]]:
    """Return the conditions that are not tags. Times also become a range of row ids, which the index can use."""
    conditions: list[str] = []
    values: dict[str, object] = {}
    within: list[str] = []
    if scope.since is not None:
        within.append("at >= :since")
        values["since"] = scope.since
    if scope.until is not None:
        within.append("at < :until")
        values["until"] = scope.until
    if within:
        of_time = f"FROM passages WHERE {' AND '.join(within)}"
        conditions += [f"p.{each}" for each in within]
        conditions.append(f"p.id BETWEEN (SELECT min(id) {of_time}) AND (SELECT max(id) {of_time})")
    if not scope.archived:
        conditions.append("p.tags NOT LIKE :archived")
        values["archived"] = f"%{ARCHIVED_TAG}%"
    if scope.in_view is not None:
        conditions.append("NOT (p.session_id = :viewed AND p.start_seq IS NOT NULL AND p.start_seq >= :viewed_from)")
        values["viewed"], values["viewed_from"] = scope.in_view
    return conditions, values
