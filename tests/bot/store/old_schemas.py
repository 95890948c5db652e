"""The statements of each step, and how the steps looked when they were first committed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from alembic.config import Config
from alembic.script import ScriptDirectory

from bot.store.migrations.upgrade import VERSIONS

if TYPE_CHECKING:
    from types import ModuleType


def _steps() -> list[ModuleType]:
    config = Config()
    config.set_main_option("path_separator", "newline")
    scripts = ScriptDirectory(str(VERSIONS.parent), version_locations=[str(VERSIONS)])
    return [each.module for each in sorted(scripts.walk_revisions(), key=lambda each: str(each.revision))]


_MODULES = _steps()
# STEPS[n - 1] has the statements that make version n; POSTGRESQL_STEPS[n - 1] those that run on PostgreSQL.
STEPS = tuple(tuple(each.STATEMENTS) for each in _MODULES)
POSTGRESQL_STEPS = tuple(tuple(getattr(each, "ON_POSTGRESQL", each.STATEMENTS)) for each in _MODULES)
# The last step that a SQLite database has only in `user_version`.
BEFORE_ALEMBIC = 13

_LINE = ",\n            FOREIGN KEY(session_id) REFERENCES sessions (id) ON DELETE CASCADE"
# Two steps were committed in another form first: the first for one hour, the second for a quarter of one.
FIRST_FORMS: dict[int, tuple[str, ...]] = {
    1: tuple(
        each.replace(_LINE, "").replace(
            "session_id VARCHAR NOT NULL", "session_id VARCHAR NOT NULL REFERENCES sessions (id) ON DELETE CASCADE"
        )
        for each in STEPS[0]
    ),
    2: tuple(
        each.replace("('generation', 0), ('purged', 0)", "('deletions', 0), ('purged', 0)").replace(
            "value = value + 1 WHERE name = 'generation'", "value = value + 1 WHERE name = 'deletions'"
        )
        if "session_placed" not in each
        else each.replace("        UPDATE search_marks SET value = value + 1 WHERE name = 'generation';\n", "")
        for each in STEPS[1]
    ),
}
