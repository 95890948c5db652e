"""The conditions of a search that both databases write alike: time, archive, view, and how far back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.store.search.tags import ARCHIVED_TAG

if TYPE_CHECKING:
    from compaction.memory.passage import Scope


def row_conditions(scope: Scope, newest: int | None) -> tuple[list[str], dict[str, object]]:
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
    if newest is not None:
        conditions.append("p.id > (SELECT max(id) FROM passages) - :newest")
        values["newest"] = newest
    if scope.sessions is not None:
        # Not as tags: BM25 would score a rare session higher.
        names = {f"session{number}": session_id for number, session_id in enumerate(sorted(scope.sessions))}
        conditions.append(f"p.session_id IN ({', '.join(f':{name}' for name in names)})")
        values |= names
    if scope.in_view is not None:
        conditions.append("NOT (p.session_id = :viewed AND p.start_seq IS NOT NULL AND p.start_seq >= :viewed_from)")
        values["viewed"], values["viewed_from"] = scope.in_view
    return conditions, values
