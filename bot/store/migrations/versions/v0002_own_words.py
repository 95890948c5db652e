"""The search index has a passage's own words alone, and the time of which it tells, by which its readers are known.

Tags tell what the bot said, and facts that a model wrote. Triggers that remove passages stay as they are.
"""

from alembic import op

revision = "0002"
down_revision = "0001"

_TAGGED = (
    """
    UPDATE passages SET tags = tags || ' kassistant' WHERE kind IN ('turn', 'fact') AND EXISTS (
        SELECT 1 FROM turns WHERE turns.session_id = passages.session_id AND turns.seq = passages.start_seq
        AND turns.kind = 'assistant'
    )
    """,
    "UPDATE passages SET tags = tags || ' kfact' WHERE kind = 'fact'",
)
# The facts of a model are indexed again when their segments change; until then, only who may read all finds them.
_TIMED = (
    "ALTER TABLE passages ADD COLUMN heard_from FLOAT DEFAULT '0' NOT NULL",
    "ALTER TABLE passages ADD COLUMN heard_until FLOAT DEFAULT '0' NOT NULL",
    "UPDATE passages SET heard_from = at, heard_until = at",
    """
    UPDATE passages SET heard_until = (
        SELECT ended_at FROM turns WHERE turns.session_id = passages.session_id AND turns.seq = passages.start_seq
    ) WHERE kind = 'turn' AND EXISTS (
        SELECT 1 FROM turns WHERE turns.session_id = passages.session_id AND turns.seq = passages.start_seq
    )
    """,
    "UPDATE passages SET heard_from = -1, heard_until = 1e11 WHERE kind IN ('segment', 'fact')",
)
_GENERATION = "UPDATE search_marks SET value = value + 1 WHERE name = 'generation'"
_INDEX_OLD = """
    INSERT INTO passage_index (passage_index, rowid, own, tags) VALUES ('delete', old.id, old.own, old.tags);
"""
_INDEX_NEW = "INSERT INTO passage_index (rowid, own, tags) VALUES (new.id, new.own, new.tags);"
_SQLITE = (
    "DROP TRIGGER passage_added",
    "DROP TRIGGER passage_changed",
    "DROP TRIGGER passage_deleted",
    "DROP TABLE passage_terms",
    "DROP TABLE passage_index",
    "ALTER TABLE passages DROP COLUMN preceding",
    "ALTER TABLE passages DROP COLUMN following",
    *_TIMED,
    *_TAGGED,
    """
    CREATE VIRTUAL TABLE passage_index USING fts5(
        own, tags, content='passages', content_rowid='id', tokenize='unicode61 remove_diacritics 0'
    )
    """,
    "INSERT INTO passage_index (passage_index) VALUES ('rebuild')",
    *(
        f"CREATE TRIGGER {name} AFTER {event} ON passages FOR EACH ROW BEGIN {body} END"
        for name, event, body in (
            ("passage_added", "INSERT", _INDEX_NEW),
            ("passage_changed", "UPDATE OF own, tags", f"{_INDEX_OLD} {_INDEX_NEW}"),
            ("passage_deleted", "DELETE", f"{_INDEX_OLD} {_GENERATION};"),
        )
    ),
    _GENERATION,
)
_POSTGRESQL = (
    "DROP TRIGGER passage_deleted ON passages",
    "DROP FUNCTION passage_deleted",
    # With its index.
    "ALTER TABLE passages DROP COLUMN words",
    "DROP FUNCTION roomtone_words",
    "ALTER TABLE passages DROP COLUMN preceding, DROP COLUMN following",
    *_TIMED,
    *_TAGGED,
    """
    CREATE FUNCTION roomtone_words(own TEXT, tags TEXT) RETURNS TSVECTOR
    LANGUAGE SQL IMMUTABLE PARALLEL SAFE AS $$
        SELECT array_to_tsvector(coalesce(array_agg(DISTINCT place || left(word, 500)), '{}'))
        FROM (VALUES ('o', own), ('t', tags)) AS texts (place, words), unnest(string_to_array(words, ' ')) AS word
        WHERE word <> ''
    $$
    """,
    "ALTER TABLE passages ADD COLUMN words TSVECTOR GENERATED ALWAYS AS (roomtone_words(own, tags)) STORED",
    "CREATE INDEX passages_by_words ON passages USING gin (words) WITH (fastupdate = off)",
    f"""
    CREATE FUNCTION passage_deleted() RETURNS TRIGGER LANGUAGE plpgsql AS $$ BEGIN
        {_GENERATION} AND EXISTS (SELECT 1 FROM gone);
        RETURN NULL;
    END $$
    """,  # noqa: S608 - constants
    """
    CREATE TRIGGER passage_deleted AFTER DELETE ON passages REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION passage_deleted()
    """,
    _GENERATION,
)


def upgrade() -> None:
    connection = op.get_bind()
    for statement in _SQLITE if connection.dialect.name == "sqlite" else _POSTGRESQL:
        connection.exec_driver_sql(statement)
