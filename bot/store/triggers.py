"""What the tables need besides SQLAlchemy's definitions: the full-text index and the triggers of each database.

What is deleted or forgotten leaves the search index in the same transaction. `generation` in `search_marks` rises with
each deletion, so that copies of embeddings in memory are dropped.
"""

from __future__ import annotations

_MARKS = "INSERT INTO search_marks (name, value) VALUES ('generation', 0)"
_COUNTED = "UPDATE search_marks SET value = value + 1 WHERE name = 'generation'"
# What each event does on both databases. '$' is the character after '#': a range uses the index.
_TURN_GONE = (
    "DELETE FROM passages WHERE session_id = old.session_id AND kind IN ('turn', 'fact') AND start_seq = old.seq;"
)
_CORRECTIONS_GONE = (
    "DELETE FROM corrections WHERE session_id = old.session_id AND (old_seq = old.seq OR new_seq = old.seq);"
)
_NOTE_GONE = "DELETE FROM passages WHERE session_id = old.session_id AND kind = 'note' AND \"key\" = old.id;"
_SEGMENT_GONE = """
    DELETE FROM passages WHERE session_id = old.session_id AND kind = 'segment' AND "key" = old.id;
    DELETE FROM passages WHERE session_id = old.session_id AND kind = 'fact'
    AND "key" >= old.id || '#' AND "key" < old.id || '$';
"""
_PLACED = f"""
    UPDATE passages SET tags = replace(replace(tags, 'gnone', 'g' || coalesce(CAST(new.guild_id AS TEXT), 'none')),
        'cnone', 'c' || coalesce(CAST(new.channel_id AS TEXT), 'none'))
    WHERE session_id = new.id;
    {_COUNTED};
"""  # noqa: S608 - constants
_SESSION_GONE = "DELETE FROM tier_opt_outs WHERE scope = 'session' AND name = old.id;"
# Name, event, and what is done after it, for each row.
_TRIGGERS = (
    ("turn_forgotten", "UPDATE OF tombstone, parts ON turns", _TURN_GONE),
    ("turn_deleted", "DELETE ON turns", f"{_TURN_GONE} {_CORRECTIONS_GONE}"),
    ("note_deleted", "DELETE ON notes", _NOTE_GONE),
    ("note_changed", "UPDATE OF who, what ON notes", _NOTE_GONE),
    ("segment_deleted", "DELETE ON segments", _SEGMENT_GONE),
    ("segment_changed", "UPDATE OF gist, facts ON segments", _SEGMENT_GONE),
    ("session_placed", "UPDATE OF guild_id, channel_id ON sessions", _PLACED),
    ("session_deleted", "DELETE ON sessions", _SESSION_GONE),
)

_INDEX_OLD = """
    INSERT INTO passage_index (passage_index, rowid, own, preceding, following, tags)
    VALUES ('delete', old.id, old.own, old.preceding, old.following, old.tags);
"""
_INDEX_NEW = """
    INSERT INTO passage_index (rowid, own, preceding, following, tags)
    VALUES (new.id, new.own, new.preceding, new.following, new.tags);
"""
_PASSAGE_GONE = f"""
    {_INDEX_OLD}
    UPDATE passages SET following = ''
    WHERE old.kind = 'turn' AND session_id = old.session_id AND kind = 'turn' AND start_seq = old.start_seq - 1;
    UPDATE passages SET preceding = ''
    WHERE old.kind = 'turn' AND session_id = old.session_id AND kind = 'turn' AND start_seq = old.start_seq + 1;
    {_COUNTED};
"""  # noqa: S608 - constants
_SQLITE = (
    """
    CREATE VIRTUAL TABLE passage_index USING fts5(
        own, preceding, following, tags,
        content='passages', content_rowid='id', tokenize='unicode61 remove_diacritics 0'
    )
    """,
    "CREATE VIRTUAL TABLE passage_terms USING fts5vocab('passage_index', 'row')",
    *(
        f"CREATE TRIGGER {name} AFTER {event} FOR EACH ROW BEGIN {body} END"
        for name, event, body in (
            *_TRIGGERS,
            ("passage_added", "INSERT ON passages", _INDEX_NEW),
            ("passage_changed", "UPDATE OF own, preceding, following, tags ON passages", f"{_INDEX_OLD} {_INDEX_NEW}"),
            ("passage_deleted", "DELETE ON passages", _PASSAGE_GONE),
        )
    ),
)

_POSTGRESQL = (
    # The terms and tags of a passage as lexemes (`bot.store.dialects.postgresql_sql`). One has at most 2,046 bytes.
    """
    CREATE FUNCTION roomtone_words(own TEXT, preceding TEXT, following TEXT, tags TEXT) RETURNS TSVECTOR
    LANGUAGE SQL IMMUTABLE PARALLEL SAFE AS $$
        SELECT array_to_tsvector(coalesce(array_agg(DISTINCT place || left(word, 500)), '{}'))
        FROM (VALUES ('o', own), ('p', preceding), ('f', following), ('t', tags)) AS texts (place, words),
        unnest(string_to_array(words, ' ')) AS word
        WHERE word <> ''
    $$
    """,
    """
    ALTER TABLE passages ADD COLUMN
    words TSVECTOR GENERATED ALWAYS AS (roomtone_words(own, preceding, following, tags)) STORED
    """,
    # Without a list of pending entries: a search would have to read it, and it would keep deleted words.
    "CREATE INDEX passages_by_words ON passages USING gin (words) WITH (fastupdate = off)",
    # Once for each statement: a session's thousand passages go in one.
    f"""
    CREATE FUNCTION passage_deleted() RETURNS TRIGGER LANGUAGE plpgsql AS $$ BEGIN
        UPDATE passages AS p SET following = '' FROM gone AS g
        WHERE g.kind = 'turn' AND p.session_id = g.session_id AND p.kind = 'turn' AND p.start_seq = g.start_seq - 1;
        UPDATE passages AS p SET preceding = '' FROM gone AS g
        WHERE g.kind = 'turn' AND p.session_id = g.session_id AND p.kind = 'turn' AND p.start_seq = g.start_seq + 1;
        {_COUNTED} AND EXISTS (SELECT 1 FROM gone);
        RETURN NULL;
    END $$
    """,  # noqa: S608 - constants
    """
    CREATE TRIGGER passage_deleted AFTER DELETE ON passages REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION passage_deleted()
    """,
    *(
        statement
        for name, event, body in _TRIGGERS
        for statement in (
            f"CREATE FUNCTION {name}() RETURNS TRIGGER LANGUAGE plpgsql AS $$ BEGIN {body} RETURN NULL; END $$",
            f"CREATE TRIGGER {name} AFTER {event} FOR EACH ROW EXECUTE FUNCTION {name}()",
        )
    ),
)


def statements_for(dialect: str) -> tuple[str, ...]:
    """Return the statements that complete the tables. `dialect`: sqlite or postgresql."""
    return (*(_SQLITE if dialect == "sqlite" else _POSTGRESQL), _MARKS)
