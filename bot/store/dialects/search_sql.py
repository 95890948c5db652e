"""The queries of memory search that both databases share. Each adds how it finds passages with a term.

A query looks at nothing but the passages of its scope, so what somebody may not read changes neither what is found nor
its order: a term counts by how many of these passages have it (`compaction.memory.recall.choose_terms`), the length of
a passage is compared with a constant, and the turns beside one are passages of the scope too.

The index has one entry for each passage with a term. Those of other people are read too before they are left out, which
takes some microseconds each.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from bot.store.search.tags import ARCHIVED_TAG, FACT_KIND
from compaction.memory.passage import (
    K1,
    MOST_SCORED,
    MOST_WITH_NEIGHBOURS,
    NEIGHBOUR_SHARE,
    TYPICAL_TERMS,
    B,
    PassageKind,
    Scope,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


# A sum of floats depends on their order, and the rank of equal passages must not.
_PRECISION = 1_000_000.0
_SIZE = "length(p.own) - length(replace(p.own, ' ', '')) + 1"
_IS_TURN = f"kind = '{PassageKind.TURN.value}'"
# Each term of a found passage counts at its place, which is the seq of a turn, and half at the places beside it. `size`
# is that of the text which has the term.
_RANKED = f"""
    hits AS MATERIALIZED ({{hits}}),
    spread AS (
        SELECT session_id, CASE WHEN {_IS_TURN} THEN start_seq ELSE -id END AS place, term, weight, size, id,
        CAST(1 AS float) AS share FROM hits
        UNION ALL SELECT session_id, start_seq - 1, term, weight, size, NULL, CAST({NEIGHBOUR_SHARE} AS float)
        FROM hits WHERE {_IS_TURN}
        UNION ALL SELECT session_id, start_seq + 1, term, weight, size, NULL, CAST({NEIGHBOUR_SHARE} AS float)
        FROM hits WHERE {_IS_TURN}
    ),
    counted AS (
        SELECT session_id, place, max(id) AS id, max(weight) AS weight, sum(share) AS often,
        coalesce(max(CASE WHEN id IS NOT NULL THEN size END), sum(size)) AS size
        FROM spread GROUP BY session_id, place, term
    ),
    scored AS MATERIALIZED (
        SELECT session_id, place, max(id) AS id, sum(CAST(round({_PRECISION} * weight * often * {K1 + 1}
            / (often + {K1} * ({1 - B} + {B} * size / {float(TYPICAL_TERMS)}))) AS bigint)) AS score
        FROM counted GROUP BY session_id, place
    ),
    best AS MATERIALIZED (
        SELECT * FROM scored WHERE id IS NOT NULL ORDER BY score DESC, id DESC LIMIT {MOST_WITH_NEIGHBOURS}
    ),
    near AS MATERIALIZED (
        SELECT session_id, place - 1 AS place FROM best WHERE place > 0
        UNION SELECT session_id, place + 1 FROM best WHERE place >= 0
    ),
    beside AS (
        SELECT DISTINCT p.id, s.score FROM scored s
        {{join}} near n ON n.session_id = s.session_id AND n.place = s.place
        {{join}} passages p ON p.session_id = s.session_id AND p.start_seq = s.place {{readable}}
        WHERE s.id IS NULL AND p.{_IS_TURN} {{conditions}}
    )
    SELECT id FROM (SELECT id, score FROM best UNION ALL SELECT id, score FROM beside) ranked
    ORDER BY score DESC, id DESC LIMIT :limit
"""  # noqa: S608 - constants


class Query(NamedTuple):
    """A SELECT and its named parameters. Lists among them are JSON."""

    sql: str
    values: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Conditions:
    """Conditions of rows of passages p, with the values of their parameters."""

    sql: tuple[str, ...] = ()
    values: Mapping[str, object] = field(default_factory=dict)


class Matched(NamedTuple):
    """Passages p that the index finds: the text after FROM, the name of their id, and the condition."""

    source: str
    row_id: str
    condition: str


@dataclass(frozen=True, slots=True)
class SearchSql:
    """How one database finds passages.

    `matched`: returns how the index finds passages by a parameter, of which `match` returns the value for a term (None:
    any) in a scope; empty if nothing need match. `tagged`: returns the conditions of a row that has
    the tags of a scope. `join` keeps the order of tables. `readable`: selects session_id, since and until of the lists
    in the parameter `readable`.
    """

    matched: Callable[[str], Matched]
    match: Callable[[str | None, Scope], str]
    tagged: Callable[[Scope], Conditions]
    join: str
    readable: str

    def count_terms(self, terms: Sequence[str], scope: Scope) -> Query:
        """Return rows of (number of the term, passages with it); -1 for all passages. None counts beyond the most."""
        values: dict[str, object] = {"most": MOST_SCORED}
        rows = [self._select(term, scope, at, values) for at, term in enumerate((None, *terms), start=-1)]
        counts = [
            f"SELECT {at} AS term, count(*) AS holding FROM ({each}) t{at + 1}"  # noqa: S608
            for at, each in enumerate(rows, start=-1)
        ]
        return self._query(scope, " UNION ALL ".join(counts), values)

    def search_words(self, weights: Mapping[str, float], scope: Scope, limit: int) -> Query:
        """Return the ids of passages with any term, the best first."""
        values: dict[str, object] = {"most": MOST_SCORED, "limit": limit}
        hits: list[str] = []
        for number, (term, weight) in enumerate(weights.items()):
            values[f"weight{number}"] = weight
            rows = self._select(term, scope, number, values, f"p.session_id, p.start_seq, p.kind, {_SIZE} AS size")
            weighed = f"CAST(:weight{number} AS float) AS weight"
            hits.append(f"SELECT {number} AS term, {weighed}, h.* FROM ({rows}) h")  # noqa: S608
        tagged, others = self.tagged(scope), _row_conditions(scope)
        values |= {**tagged.values, **others.values}
        ranked = _RANKED.format(
            hits=" UNION ALL ".join(hits),
            join=self.join,
            readable=self._joined(scope),
            conditions="".join(f" AND {each}" for each in (*tagged.sql, *others.sql)),
        )
        return self._query(scope, ranked, values, joins=True)

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
        source, row_id, conditions = "passages p", "p.id", list(where)
        if match := self.match(term, scope):
            name = f"match{number + 1}"
            source, row_id, condition = self.matched(name)
            conditions.append(condition)
            values[name] = match
        others = _row_conditions(scope)
        conditions += others.sql
        values |= others.values
        # A turn of no length is in two stays that touch.
        distinct = "" if scope.readable.sessions is None else "DISTINCT "
        columns = f"{row_id} AS id, {columns}" if columns else f"{row_id} AS id"
        # No outside text is in the SQL: words are parameters.
        return (
            f"SELECT {distinct}{columns} FROM {source} {self._joined(scope)} "  # noqa: S608
            f"WHERE {' AND '.join(conditions) or 'true'} ORDER BY {row_id} DESC LIMIT :most"
        )

    def _joined(self, scope: Scope) -> str:
        if scope.readable.sessions is None:
            return ""
        held = "r.since <= p.heard_from AND p.heard_until <= r.until"
        return f"{self.join} readable r ON r.session_id = p.session_id AND {held}"

    def _query(self, scope: Scope, sql: str, values: Mapping[str, object], *, joins: bool = False) -> Query:
        sessions = scope.readable.sessions
        if sessions is None:
            return Query(f"WITH {sql}" if joins else sql, values)
        rows = [(session_id, *stretch) for session_id, stretches in sorted(sessions.items()) for stretch in stretches]
        readable = f"WITH readable AS MATERIALIZED ({self.readable})"
        return Query(f"{readable}{',' if joins else ''} {sql}", {**values, "readable": json.dumps(rows)})


def _row_conditions(scope: Scope) -> Conditions:
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
    return Conditions(tuple(conditions), values)
